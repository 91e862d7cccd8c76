import {
  type Hex,
  type LocalAccount,
  parseSignature,
  serializeCompactSignature,
  serializeErc6492Signature,
  signatureToCompactSignature,
} from "viem";
import { expect, test } from "vitest";
import type { Authorization } from "../../../api/platform/chain/view.ts";
import type { Address } from "../../../api/platform/wallet.ts";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { nothingCharged } from "../../support/payments/on-chain.ts";
import {
  authorization,
  newPayer,
  signAuthorization,
  signReceiveAuthorization,
} from "../../support/payments/signing.ts";
import { deployWallet } from "../../support/payments/wallets.ts";
import { startService } from "../../support/service/service.ts";
import { statementsOf, wire } from "../../support/settlement-status/statements.ts";

// Whose signature a statement rests on: an account's, a contract wallet's, in either form that USDC takes.

const base = await forFile(startBaseLike());
const { chain } = base;
const service = await forFile(startService({ chain, now: base.now, jobs: false, config: { rpcUrls: base.rpcUrls } }));
const { buy, statementOf } = statementsOf(base, service);

const STRANGER: Address = "0x00000000000000000000000000000000000a11ce";
/** An address without code, which nobody has a key for. */
const UNDEPLOYED: Address = "0x0000000000000000000000000000000000dec0de";

test("a contract wallet's signature and one for the payee's submission are verified, and forged ones are refused", async () => {
  const owner = await newPayer(chain);
  const wallet = await deployWallet(chain, owner.address);
  const fields = { to: STRANGER, value: 5n, validBefore: base.unixNow() + 600n };
  const ofWallet = authorization({ from: wallet.address, ...fields });
  const ofOwner = authorization({ from: owner.address, ...fields });
  const undeployed = authorization({ from: UNDEPLOYED, ...fields });
  const stranger = await newPayer(chain);
  const by = (signer: LocalAccount, signed: Authorization, sign = signAuthorization) =>
    sign(signer, chain.network, signed).then((signature) =>
      buy({ network: "base", authorization: wire({ authorization: signed, signature }), signature }),
    );
  const [asWallet, asReceived, ...refused] = await Promise.all([
    by(owner, ofWallet),
    by(owner, ofOwner, signReceiveAuthorization),
    by(stranger, ofWallet),
    by(stranger, ofOwner, signReceiveAuthorization),
    by(owner, undeployed),
  ]);
  for (const [bought, primary_type] of [
    [asWallet, "TransferWithAuthorization"],
    [asReceived, "ReceiveWithAuthorization"],
  ] as const) {
    const { answer, check } = await statementOf(bought);
    expect(answer.body).toMatchObject({
      signature: { verified: true, primary_type },
      conditional_on: null,
      settlement: { status: "pending", final: false },
    });
    expect(await check()).toMatchObject({ valid: true });
  }
  for (const { answer, payer } of refused) {
    expectProblem(answer, 422, "unacceptable");
    await nothingCharged(chain, payer);
  }
});

const compact = (one: Hex) => serializeCompactSignature(signatureToCompactSignature(parseSignature(one)));
const wrapped = (one: Hex) => serializeErc6492Signature({ address: STRANGER, data: "0x12", signature: one });

test("a signature is verified in every form that wallets write, and a wallet that is not deployed is told so", async () => {
  const owner = await newPayer(chain);
  const wallet = await deployWallet(chain, owner.address);
  const fields = { to: STRANGER, value: 5n, validBefore: base.unixNow() + 600n };
  const by = async (from: Address, form: (signature: Hex) => Hex) => {
    const signed = authorization({ from, ...fields });
    const signature = await signAuthorization(owner, chain.network, signed);
    const bought = await buy({ authorization: wire({ authorization: signed, signature }), signature: form(signature) });
    return { ...bought, signature: form(signature) };
  };
  const fromZero = (one: Hex) => `${one.slice(0, 130)}0${one.endsWith("1b") ? 0 : 1}` as Hex;
  for (const form of [fromZero, compact, wrapped, (one: Hex) => wrapped(compact(one))]) {
    const bought = await by(owner.address, form);
    expect(bought.answer.body).toMatchObject({ signature: { verified: true }, conditional_on: null });
    const { check } = await statementOf(bought);
    expect(await check(undefined, bought.signature)).toMatchObject({ valid: true });
  }
  expect((await by(wallet.address, wrapped)).answer.body).toMatchObject({ signature: { verified: true } });
  const { answer, payer } = await by(UNDEPLOYED, wrapped);
  expectProblem(answer, 422, "unacceptable");
  expect(answer.text).toMatch(/is not deployed on base.*Deploy the wallet first.*Or leave the signature out/);
  await nothingCharged(chain, payer);
});
