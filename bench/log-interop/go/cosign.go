package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cloudflare/circl/sign/mldsa/mldsa44"
)

// cosign makes an ML-DSA-44 cosignature of our checkpoint, from the text of C2SP tlog-cosignature alone, and beside it one
// without a time and a line of a type that nobody knows.
func cosign(path string) {
	const name = "witness.example/pq"
	pub, secret, err := mldsa44.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	note := string(must(os.ReadFile(path)))
	lines := strings.Split(note, "\n")
	size := must(strconv.ParseUint(lines[1], 10, 64))
	root := must(base64.StdEncoding.DecodeString(lines[2]))
	statement := func(seconds uint64) string {
		message := append([]byte("subtree/v1\n\x00"), byte(len(name)))
		message = append(message, name...)
		message = binary.BigEndian.AppendUint64(message, seconds)
		message = append(append(message, byte(len(lines[0]))), lines[0]...)
		message = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(message, 0), size)
		signature := make([]byte, mldsa44.SignatureSize)
		if err := mldsa44.SignTo(secret, append(message, root...), nil, true, signature); err != nil {
			panic(err)
		}
		return line(name, 6, pub.Bytes(), append(binary.BigEndian.AppendUint64(nil, seconds), signature...))
	}
	unknown := line("witness.example/later", 0x7f, []byte("key"), []byte("signature of a later type"))
	must(0, os.WriteFile("pq-cosigned.txt", []byte(note+unknown+statement(1_790_000_000)), 0o644))
	must(0, os.WriteFile("pq-untimed.txt", []byte(note+statement(0)), 0o644))
	vkey := fmt.Sprintf("%s+%x+%s", name, keyID(name, 6, pub.Bytes()), base64.StdEncoding.EncodeToString(append([]byte{6}, pub.Bytes()...)))
	policy := "log " + string(must(os.ReadFile("vkey.txt"))) + "\nwitness pq " + vkey + "\nquorum pq\n"
	must(0, os.WriteFile("pq-policy.txt", []byte(policy), 0o644))
	fmt.Println("go: cosigned our checkpoint with ML-DSA-44")
}

func keyID(name string, kind byte, key []byte) []byte {
	hash := sha256.Sum256(append(append([]byte(name+"\n"), kind), key...))
	return hash[:4]
}

func line(name string, kind byte, key, signature []byte) string {
	return "— " + name + " " + base64.StdEncoding.EncodeToString(append(keyID(name, kind, key), signature...)) + "\n"
}
