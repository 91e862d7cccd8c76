// The peer of bench:log: adds the entries of a file, one per line, to Tessera's POSIX log, and prints the measurements as JSON.
//
//	tessera <folder> <entries> bulk            all together: entries per second in a checkpoint
//	tessera <folder> <entries> <per second>    in sequence: milliseconds from each submission to a signed checkpoint
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"
)

// The shortest interval of our log and of Tessera's POSIX driver.
const checkpointInterval = time.Second

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx := context.Background()
	entries := read(os.Args[2])
	key, _, err := note.GenerateKey(rand.Reader, "bench.example/tessera")
	check(err)
	signer, err := note.NewSigner(key)
	check(err)
	driver, err := posix.New(ctx, posix.Config{Path: os.Args[1]})
	check(err)
	options := tessera.NewAppendOptions().
		WithCheckpointSigner(signer).
		WithCheckpointInterval(checkpointInterval).
		WithBatching(tessera.DefaultBatchMaxSize, tessera.DefaultBatchMaxAge).
		WithPushback(uint(len(entries)))
	appender, shutdown, reader, err := tessera.NewAppender(ctx, driver, options)
	check(err)
	awaiter := tessera.NewPublicationAwaiter(ctx, reader.ReadCheckpoint, 10*time.Millisecond)

	pause := time.Duration(0)
	if os.Args[3] != "bulk" {
		perSecond, err := strconv.Atoi(os.Args[3])
		check(err)
		pause = time.Second / time.Duration(perSecond)
	}
	times := make([]float64, len(entries))
	var all sync.WaitGroup
	began := time.Now()
	for at, entry := range entries {
		time.Sleep(time.Until(began.Add(time.Duration(at) * pause)))
		submitted := time.Now()
		future := appender.Add(ctx, tessera.NewEntry(entry))
		all.Go(func() {
			_, _, err := awaiter.Await(ctx, future)
			check(err)
			times[at] = float64(time.Since(submitted).Microseconds()) / 1000
		})
	}
	all.Wait()
	perSecond := float64(len(entries)) / time.Since(began).Seconds()
	check(shutdown(ctx))
	result, err := json.Marshal(map[string]any{"perSecond": perSecond, "times": times})
	check(err)
	fmt.Println(string(result))
}

func read(path string) [][]byte {
	file, err := os.Open(path)
	check(err)
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	var lines [][]byte
	for scanner.Scan() {
		lines = append(lines, append([]byte(nil), scanner.Bytes()...))
	}
	check(scanner.Err())
	return lines
}
