import "../../handlers/head.ts";
import "./escrow.ts";
