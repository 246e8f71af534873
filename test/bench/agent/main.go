// Command agent reads its prompt to the end and prints one envelope, always the same. It is a page and a report in one,
// so it is an answer to every role of the benchmark.
package main

import (
	"fmt"
	"io"
	"os"
)

const answer = `{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"num_turns":1,` +
	`"session_id":"bench",` +
	`"result":"<!DOCTYPE html>\n<html><body><main><p>Always the same.</p></main></body></html>\n",` +
	`"total_cost_usd":0.01,` +
	`"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":20}}`

func main() {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "read the prompt:", err)
		os.Exit(1)
	}
	fmt.Println(answer)
}
