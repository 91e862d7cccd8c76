/** A redirect as a store sends it: who, and where to. Keys and hosts' names are made up; the parameters are real. */
export interface PresignedRedirect {
  readonly store: string;
  readonly location: string;
}

const SIGV4 = (service: string, prefix = "X-Amz") =>
  `${prefix}-Algorithm=AWS4-HMAC-SHA256&${prefix}-Credential=AKIAEXAMPLE%2F20260101%2Fus-east-1%2F${service}%2Faws4_request` +
  `&${prefix}-Date=20260101T000000Z&${prefix}-Expires=300&${prefix}-SignedHeaders=host&${prefix}-Signature=5d0a7c`;
const GOOG = SIGV4("storage", "X-Goog").replace("AWS4-HMAC-SHA256", "GOOG4-RSA-SHA256");
const SAS = "sv=2025-01-05&se=2026-01-01T01%3A00%3A00Z&sr=b&sp=r&sig=q%2F8v%2Bw%3D";
const CLOUDFRONT = "Expires=1767229200&Signature=aB3~x-Y__&Key-Pair-Id=K2EXAMPLE";

/**
 * What popular stores and networks put into `Location`: links that are signed for minutes, and links with a key in
 * them. Each is public for whoever is redirected to it.
 */
export const PRESIGNED_REDIRECTS: readonly PresignedRedirect[] = [
  { store: "S3, path style", location: `s3.us-east-1.amazonaws.com/bucket/report.pdf?${SIGV4("s3")}` },
  { store: "S3, virtual host", location: `bucket.s3.eu-west-1.amazonaws.com/report.pdf?${SIGV4("s3")}` },
  {
    store: "S3, temporary keys",
    location: `bucket.s3.amazonaws.com/report.pdf?${SIGV4("s3")}&X-Amz-Security-Token=IQoJb3JpZ2luX2Vj`,
  },
  {
    store: "S3, signature version 2",
    location: "bucket.s3.amazonaws.com/a?AWSAccessKeyId=AKIA&Expires=1&Signature=x%3D",
  },
  { store: "S3, dual stack", location: `bucket.s3.dualstack.us-west-2.amazonaws.com/report.pdf?${SIGV4("s3")}` },
  { store: "S3 in China", location: `bucket.s3.cn-north-1.amazonaws.com.cn/report.pdf?${SIGV4("s3")}` },
  { store: "Cloudflare R2", location: `account.r2.cloudflarestorage.com/bucket/report.pdf?${SIGV4("s3")}` },
  { store: "Backblaze B2", location: `bucket.s3.us-west-004.backblazeb2.com/report.pdf?${SIGV4("s3")}` },
  { store: "Backblaze B2, native", location: "f004.backblazeb2.com/file/bucket/report.pdf?Authorization=3_2026_key" },
  { store: "DigitalOcean Spaces", location: `bucket.nyc3.digitaloceanspaces.com/report.pdf?${SIGV4("s3")}` },
  { store: "Wasabi", location: `s3.wasabisys.com/bucket/report.pdf?${SIGV4("s3")}` },
  { store: "Google Cloud Storage, version 4", location: `storage.googleapis.com/bucket/report.pdf?${GOOG}` },
  {
    store: "Google Cloud Storage, version 2",
    location: "storage.googleapis.com/bucket/a?GoogleAccessId=me%40project.iam&Expires=1&Signature=x%3D",
  },
  {
    store: "Google Drive",
    location: "drive.usercontent.google.com/download?id=1abc&export=download&authuser=0&at=AB12",
  },
  {
    store: "Firebase",
    location: "firebasestorage.googleapis.com/v0/b/app/o/a.pdf?alt=media&token=0f0e7c1a-1111-4222-8333-444455556666",
  },
  { store: "Azure Blob Storage", location: `account.blob.core.windows.net/container/report.pdf?${SAS}` },
  { store: "Azure, user delegation", location: `account.blob.core.windows.net/c/a?skoid=1&sktid=2&ske=x&${SAS}` },
  { store: "SharePoint", location: "tenant.sharepoint.com/_layouts/15/download.aspx?UniqueId=1&tempauth=v1.eyJ0eXAi" },
  {
    store: "GitHub release",
    location: `release-assets.githubusercontent.com/github-production-release-asset/1/2?${SAS}&jwt=eyJ0eXAi&response-content-type=application%2Foctet-stream`,
  },
  {
    store: "GitHub release, older",
    location: `objects.githubusercontent.com/github-production-release-asset-2e65be/1/2?${SIGV4("s3")}`,
  },
  { store: "GitHub archive, private", location: "codeload.github.com/o/r/legacy.zip/refs/heads/main?token=AAAA" },
  { store: "GitHub LFS", location: `github-cloud.githubusercontent.com/alambic/media/1?${SIGV4("s3")}&actor_id=0` },
  {
    store: "GitLab artifacts",
    location: "cdn.artifacts.gitlab-static.net/a/b/report.zip?Expires=1&KeyName=gprd&Signature=x%3D",
  },
  {
    store: "Hugging Face, LFS",
    location: `cdn-lfs.hf.co/repos/a/b/c?response-content-disposition=inline&Policy=eyJT&${CLOUDFRONT}`,
  },
  { store: "Hugging Face, Xet", location: `cas-bridge.xethub.hf.co/xet-bridge-us/a/b?${SIGV4("s3")}&x-id=GetObject` },
  { store: "PyTorch Hub on CloudFront", location: `d1example.cloudfront.net/model.bin?${CLOUDFRONT}` },
  {
    store: "Docker registry on CloudFront",
    location: `production.cloudflare.docker.com/registry-v2/a?${CLOUDFRONT}&verify=1-x`,
  },
  { store: "Google Cloud CDN", location: "cdn.shop-files.com/report.pdf?Expires=1&KeyName=k1&Signature=x%3D" },
  { store: "Akamai", location: "media.shop-files.com/report.pdf?hdnea=exp=1~acl=/*~hmac=5d0a7c" },
  { store: "Bunny CDN", location: "files.b-cdn.net/report.pdf?token=HS256-abc&expires=1767229200" },
  {
    store: "Alibaba OSS",
    location: "bucket.oss-cn-hangzhou.aliyuncs.com/a?Expires=1&OSSAccessKeyId=LTAI&Signature=x%3D&security-token=CAIS",
  },
  {
    store: "Tencent COS",
    location: "bucket-125.cos.ap-guangzhou.myqcloud.com/a?q-sign-algorithm=sha1&q-ak=AKID&q-signature=5d0a7c",
  },
  {
    store: "Dropbox",
    location: "uc1.dl.dropboxusercontent.com/cd/0/get/A/file?_download_id=1&_notify_domain=www.dropbox.com&dl=1",
  },
];
