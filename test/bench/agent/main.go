// Command agent reads its prompt to the end and prints one envelope, always the same. It is a page and a report in one,
// so it is an answer to every role of the benchmark.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

const answer = `{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"num_turns":1,` +
	`"session_id":"bench",` +
	`"result":"<!DOCTYPE html>\n<html><body><main><p>Always the same.</p></main></body></html>\n",` +
	`"total_cost_usd":0.01,` +
	`"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":20}}`

func main() {
	log := flag.String("log", "", "file to which it appends the time of its start in nanoseconds, in 20 bytes")
	take := flag.Duration("take", 0, "time after which it answers")
	flag.Parse()
	if err := work(*log, *take); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(answer)
}

func work(log string, take time.Duration) error {
	if log != "" {
		if err := record(log); err != nil {
			return fmt.Errorf("record the start: %w", err)
		}
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return fmt.Errorf("read the prompt: %w", err)
	}
	time.Sleep(take)
	return nil
}

func record(log string) error {
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%019d\n", time.Now().UnixNano())
	return errors.Join(err, f.Close())
}
