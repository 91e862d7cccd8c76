package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

type dir struct{}

func (dir) Height() int { return 8 }
func (dir) ReadTiles(ts []tlog.Tile) ([][]byte, error) {
	var out [][]byte
	for _, t := range ts {
		b, err := os.ReadFile("exported/log/" + strings.Replace(t.Path(), "tile/8/", "tile/", 1))
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}
func (dir) SaveTiles([]tlog.Tile, [][]byte) {}

func open(path, vkey string) (int64, tlog.Hash) {
	v := must(note.NewVerifier(vkey))
	n := must(note.Open(must(os.ReadFile(path)), note.VerifierList(v)))
	l := strings.Split(n.Text, "\n")
	var size int64
	fmt.Sscan(l[1], &size)
	h := must(tlog.ParseHash(l[2]))
	fmt.Println("go: note opened:", l[0], size, "signed by", n.Sigs[0].Name, "unknown:", len(n.UnverifiedSigs))
	return size, h
}

func main() {
	vkey := string(must(os.ReadFile("vkey.txt")))
	size, root := open("exported/log/checkpoint", vkey)
	oldSize, oldRoot := open("old.txt", vkey)
	r := tlog.TileHashReader(tlog.Tree{N: size, Hash: root}, dir{})
	for _, i := range []int64{0, 255, 256, 65535, 65536, 65537, 69999} {
		p := must(tlog.ProveRecord(size, i, r))
		if err := tlog.CheckRecord(p, size, root, i, tlog.RecordHash([]byte(fmt.Sprintf("entry %d", i)))); err != nil {
			panic(err)
		}
	}
	fmt.Println("go: 7 records proven from our tiles")
	p := must(tlog.ProveTree(size, oldSize, r))
	if err := tlog.CheckTree(p, size, root, oldSize, oldRoot); err != nil {
		panic(err)
	}
	var ours tlog.TreeProof
	for _, l := range strings.Fields(string(must(os.ReadFile("consistency.txt")))) {
		ours = append(ours, must(tlog.ParseHash(l)))
	}
	if err := tlog.CheckTree(ours, size, root, oldSize, oldRoot); err != nil {
		panic(err)
	}
	fmt.Println("go: consistency 65535->70000 proven from our tiles, and our own proof holds")
	parts := strings.SplitN(string(must(os.ReadFile("65537.tlog-proof"))), "\n\n", 2)
	var rp tlog.RecordProof
	for _, l := range strings.Split(parts[0], "\n")[3:] {
		rp = append(rp, must(tlog.ParseHash(l)))
	}
	if err := tlog.CheckRecord(rp, size, root, 65537, tlog.RecordHash([]byte("entry 65537"))); err != nil {
		panic(err)
	}
	fmt.Println("go: our .tlog-proof of 65537 holds")

	cosign("exported/log/checkpoint")

	// A foreign log: made by Go, proven by Go, for our verifier.
	skey, fvkey := keys(note.GenerateKey(rand.Reader, "go.example/log"))
	signer := must(note.NewSigner(skey))
	var hashes []tlog.Hash
	hr := tlog.HashReaderFunc(func(ix []int64) ([]tlog.Hash, error) {
		var o []tlog.Hash
		for _, i := range ix {
			o = append(o, hashes[i])
		}
		return o, nil
	})
	const N = 777
	for i := int64(0); i < N; i++ {
		hashes = append(hashes, must(tlog.StoredHashes(i, []byte(fmt.Sprintf("foreign %d", i)), hr))...)
	}
	th := must(tlog.TreeHash(N, hr))
	fp := must(tlog.ProveRecord(N, 600, hr))
	msg := must(note.Sign(&note.Note{Text: fmt.Sprintf("go.example/log\n%d\n%s\n", N, th)}, signer))
	out := "c2sp.org/tlog-proof@v1\nextra " + base64.StdEncoding.EncodeToString([]byte("foreign 600")) + "\nindex 600\n"
	for _, h := range fp {
		out += h.String() + "\n"
	}
	os.WriteFile("go.tlog-proof", []byte(out+"\n"+string(msg)), 0o644)
	os.WriteFile("go-policy.txt", []byte("log "+fvkey+"\nquorum none\n"), 0o644)
	fmt.Println("go: wrote a proof of its own log,", fvkey)
}

func keys(secret, vkey string, err error) (string, string) {
	if err != nil {
		panic(err)
	}
	return secret, vkey
}
