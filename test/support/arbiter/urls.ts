/** IPv4 addresses that must be unreachable for outsiders, each tried in the notations below. */
const IPV4 = [
  "127.0.0.1",
  "127.255.255.254",
  "0.0.0.0",
  "10.0.0.1",
  "10.255.255.255",
  "100.64.0.1",
  "100.100.100.200",
  "169.254.169.254",
  "169.254.170.2",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.192",
  "192.168.0.1",
  "198.18.0.1",
  "168.63.129.16",
  "224.0.0.1",
  "255.255.255.255",
  "240.0.0.1",
  "192.0.2.1",
  "192.88.99.1",
  "203.0.113.9",
];

/** Notations that the URL standard parses as the same address (https://url.spec.whatwg.org, host parsing). */
function notations(address: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
  const hex = (part: number) => `0x${part.toString(16)}`;
  const whole = ((a * 256 + b) * 256 + c) * 256 + d;
  return [
    address,
    `${address}.`,
    String(whole),
    hex(whole),
    [a, b, c, d].map((part) => `0${part.toString(8)}`).join("."),
    `${hex(a)}.${b}.${c * 256 + d}`,
    `${a}.${(b * 256 + c) * 256 + d}`,
    address.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
    address.replaceAll(".", "\u3002"),
    address.replaceAll(".", "%2e"),
    `[::ffff:${address}]`,
    `[::${address}]`,
    `[64:ff9b::${address}]`,
    `[64:ff9b:1::${address}]`,
    `[2002:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}::1]`,
    `[2001:0:4136:e378:8000:63bf:${(65535 - (a * 256 + b)).toString(16)}:${(65535 - (c * 256 + d)).toString(16)}]`,
    `[2600:1f18::5efe:${address}]`,
  ];
}

const IPV6 = [
  "::",
  "::1",
  "0:0:0:0:0:0:0:1",
  "fe80::1",
  "febf::1",
  "fec0::1",
  "fc00::1",
  "fd00:ec2::254",
  "fd20:ce::254",
  "ff02::1",
  "100::1",
  "100:0:0:1::1",
  "2001:db8::1",
  "2001:2::1",
  "2001:10::1",
  "2001:20::1",
  "2001:1::1",
  "2001:4:112::1",
  "2620:4f:8000::1",
  "3fff::1",
  "5f00::1",
  "4000::1",
  "::ffff:0:127.0.0.1",
].map((address) => `[${address}]`);

/** Names that are refused no matter what they resolve to. */
const NAMES = [
  "localhost",
  "LOCALHOST",
  "localhost.",
  "x.localhost",
  "intranet",
  "router",
  "metadata",
  "metadata.google.internal",
  "metadata.google.internal.",
  "instance-data.ec2.internal",
  "kubernetes.default.svc.cluster.local",
  "printer.local",
  "a.local.",
  "db.internal",
  "nas.lan",
  "host.home.arpa",
  "my.home",
  "x.corp",
  "x.private",
  "x.intranet",
  "host.localdomain",
  "x.test",
  "x.invalid",
  "x.onion",
  "x.alt",
  "trust.example",
  "TRUST.example",
  "trust.example.",
  "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
  "ｌocalhost",
  "metadata。google。internal",
  "loc\u00adalhost",
  "𝓵𝓸𝓬𝓪𝓵𝓱𝓸𝓼𝓽",
  "public.example.",
];

/** Names that look public, with the internal addresses that they resolve to. */
export const LEADS_INSIDE: Readonly<Record<string, readonly string[]>> = {
  "loop.example": ["127.0.0.1"],
  "meta.example": ["169.254.169.254"],
  "azure.example": ["168.63.129.16"],
  "mixed.example": ["93.184.216.34", "10.0.0.1"],
  "mixed6.example": ["93.184.216.34", "fe80::1"],
  "six.example": ["::1"],
  "zone.example": ["fe80::1%eth0"],
  "mapped.example": ["::ffff:127.0.0.1"],
  "tunnel.example": ["2002:7f00:1::"],
  "nat64.example": ["64:ff9b::a00:1"],
  "odd.example": ["0177.0.0.1"],
  "text.example": ["not an address"],
  "self.example": ["93.184.216.99"],
  "mine.example": ["93.184.216.77"],
  "none.example": [],
  "xn--bcher-kva.example": ["192.168.1.1"],
};

const OTHERS = [
  "http://public.example:8080/",
  "http://public.example:22/",
  "https://public.example:8443/",
  "http://public.example:0/",
  "http://public.example:65535/",
  "http://93.184.216.34:6379/",
  "http://user@public.example/",
  "http://user:pw@public.example/",
  "http://:pw@public.example/",
  "http://public.example%40127.0.0.1@public.example/",
  "http://127.0.0.1@public.example/",
  "http://public.example@127.0.0.1/",
  "http://public.example:80@127.0.0.1/",
  "http://public.example#@127.0.0.1:81/".replace("#", "%23"),
  "ftp://public.example/",
  "file:///etc/passwd",
  "gopher://127.0.0.1:70/",
  "data:text/plain,x",
  "unix:/var/run/docker.sock",
  "ws://public.example/",
  "javascript:alert(1)",
  "blob:http://public.example/x",
  "http://93.184.216.77/",
  "http://93.184.216.99/",
  "http://[2606:4700::77]/",
];

/** URLs that must never open a connection. */
export const HOSTILE_URLS: readonly string[] = [
  ...IPV4.flatMap(notations).map((host) => `http://${host}/`),
  ...IPV6.flatMap((host) => [`http://${host}/`, `https://${host}/`]),
  ...NAMES.map((host) => `http://${host}/`),
  ...Object.keys(LEADS_INSIDE).map((host) => `https://${host}/`),
  "http://BÜCHER.example/",
  ...OTHERS,
];

/**
 * A redirect as a store sends it: the store, and its target. Keys and host names are made up; the parameters are real.
 */
export interface PresignedRedirect {
  readonly store: string;
  readonly location: string;
}

const SIGV4 = (service: string, prefix = "X-Amz") =>
  `${prefix}-Algorithm=AWS4-HMAC-SHA256&${prefix}-Credential=AKIAEXAMPLE%2F20260101%2Fus-east-1%2F${service}%2Faws4_request` +
  `&${prefix}-Date=20260101T000000Z&${prefix}-Expires=300&${prefix}-SignedHeaders=host&${prefix}-Signature=5d0a7c`;
const GOOG = SIGV4("storage", "X-Goog").replace("AWS4-HMAC-SHA256", "GOOG4-RSA-SHA256");
const SAS = "sv=2025-01-05&se=2026-01-01T01%3A00%3A00Z&sr=b&sp=r&sig=q%2F8v%2Bw%3D";

/**
 * `Location` values of popular stores and networks, one for each way of signing a link or of putting a key into it. Each
 * is public for every client that is redirected to it.
 */
export const PRESIGNED_REDIRECTS: readonly PresignedRedirect[] = [
  { store: "S3, path style", location: `s3.us-east-1.amazonaws.com/bucket/report.pdf?${SIGV4("s3")}` },
  {
    store: "S3, signature version 2",
    location: "bucket.s3.amazonaws.com/a?AWSAccessKeyId=AKIA&Expires=1&Signature=x%3D",
  },
  { store: "Backblaze B2, native", location: "f004.backblazeb2.com/file/bucket/report.pdf?Authorization=3_2026_key" },
  { store: "Google Cloud Storage, version 4", location: `storage.googleapis.com/bucket/report.pdf?${GOOG}` },
  {
    store: "Google Drive",
    location: "drive.usercontent.google.com/download?id=1abc&export=download&authuser=0&at=AB12",
  },
  {
    store: "Firebase",
    location: "firebasestorage.googleapis.com/v0/b/app/o/a.pdf?alt=media&token=0f0e7c1a-1111-4222-8333-444455556666",
  },
  { store: "Azure Blob Storage", location: `account.blob.core.windows.net/container/report.pdf?${SAS}` },
  { store: "SharePoint", location: "tenant.sharepoint.com/_layouts/15/download.aspx?UniqueId=1&tempauth=v1.eyJ0eXAi" },
  {
    store: "GitHub release",
    location: `release-assets.githubusercontent.com/github-production-release-asset/1/2?jwt=eyJ0eXAi&response-content-type=application%2Foctet-stream`,
  },
  { store: "Akamai", location: "media.shop-files.com/report.pdf?hdnea=exp=1~acl=/*~hmac=5d0a7c" },
  {
    store: "Alibaba OSS",
    location: "bucket.oss-cn-hangzhou.aliyuncs.com/a?Expires=1&OSSAccessKeyId=LTAI&Signature=x%3D&security-token=CAIS",
  },
  {
    store: "Tencent COS",
    location: "bucket-125.cos.ap-guangzhou.myqcloud.com/a?q-sign-algorithm=sha1&q-ak=AKID&q-signature=5d0a7c",
  },
];
