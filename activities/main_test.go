package activities

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/internal/testenv"
)

// The test binary, started again with this variable, is the agent; the other one names a folder that test and
// agents share.
const (
	playing = "ACTIVITIES_TEST_PLAYS"
	folder  = "ACTIVITIES_TEST_FOLDER"
)

// programs is the folder of the supervisor as a program. The test binary in its place would be slow: it is large,
// and has the race detector in it.
var programs string

// runTests builds the supervisor, and runs the tests.
func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "supervisor")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		programs, err = testenv.Programs("..", dir, "./internal/supervisor/"+supervisor.Program)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func TestMain(m *testing.M) {
	play, ok := os.LookupEnv(playing)
	if !ok {
		os.Exit(runTests(m))
	}
	act(play)
	syscall.Exit(0) // at once: os.Exit of a program with the race detector waits a second
}

// act is the agent.
func act(play string) {
	dir := os.Getenv(folder)
	// the process id is the same in every sandbox
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("started-%d-%d", os.Getpid(), time.Now().UnixNano())), nil,
		0o600); err != nil {
		panic(err)
	}
	if command, ok := strings.CutPrefix(play, "sh "); ok {
		cmd := exec.Command("sh", "-c", command)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			panic(err)
		}
		return
	}
	switch play {
	case "answer":
		answerWith("An answer.")
	case "full": // it reports that the window of its account is used up
		fmt.Printf(`[{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","unifiedWindows":`+
			`{"five_hour":{"utilization":0.98,"resetsAt":%d}}}},%s]`+"\n", time.Now().Add(time.Hour).Unix(), envelopeOf("An answer."))
	case "wait": // until letGo
		until(filepath.Join(dir, "go"))
		answerWith("An answer.")
	case "spill": // the prompt is kept for the test
		prompt, err := io.ReadAll(os.Stdin)
		if err != nil {
			panic(err)
		}
		write(filepath.Join(dir, "prompt"), string(prompt))
		answerWith("open-sesame\n```html\n<!DOCTYPE html>\n<html>open-sesame</html>\n```\n")
	case "spill and fail": // with the secret where the message is cut off
		fmt.Fprintln(os.Stderr, "could not say open-sesame")
		answer := envelopeOf(strings.Repeat("x", 296) + "open-sesame")
		fmt.Println(strings.Replace(answer, `"is_error":false`, `"is_error":true`, 1))
		syscall.Exit(1)
	case "hang":
		fmt.Print(`{"type":"result","result":"half`)
		until(filepath.Join(dir, "never"))
	}
}

func until(path string) {
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond) // the agent polls, not the test
	}
}

func folders(paths ...string) {
	for _, p := range paths {
		if err := os.MkdirAll(p, 0o700); err != nil {
			panic(err)
		}
	}
}

func write(path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		panic(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	return string(must(os.ReadFile(path))(t))
}

func answerWith(text string) { fmt.Println(envelopeOf(text)) }

// envelopeOf is what `claude -p --output-format json` prints.
func envelopeOf(text string) string {
	return fmt.Sprintf(`{"type":"result","subtype":"success","is_error":false,"result":%q,"total_cost_usd":0.25,`+
		`"usage":{"input_tokens":10,"output_tokens":5}}`, text)
}

// Ends of scripts that are agents.
const (
	thenAnswer = "; echo '" + `{"type":"result","subtype":"success","is_error":false,"result":"Done.","total_cost_usd":0.25,` +
		`"usage":{"input_tokens":10,"output_tokens":5}}` + "'"
	// the store cannot be read until the test calls storeBack
	thenLoseStore = `; cd "$` + folder + `/store"; mv blobs away; touch blobs`
)
