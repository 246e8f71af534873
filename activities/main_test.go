package activities

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
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
	case "wait": // until the test says go
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
	case "write":
		write("page.html", "<!DOCTYPE html>\n<html>written</html>\n")
		answerWith("I changed the page.")
	case "lose the store": // while it answers
		if err := os.Rename(filepath.Join(dir, "store", "blobs"), filepath.Join(dir, "store", "away")); err != nil {
			panic(err)
		}
		write(filepath.Join(dir, "store", "blobs"), "in the way")
		answerWith("An answer.")
	case "print, and lose the store":
		if err := os.Rename(filepath.Join(dir, "store", "blobs"), filepath.Join(dir, "store", "away")); err != nil {
			panic(err)
		}
		write(filepath.Join(dir, "store", "blobs"), "in the way")
		fmt.Println("A plain answer.")
	case "leave a socket":
		if err := os.Remove("page.html"); err != nil {
			panic(err)
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "page.html", Net: "unix"})
		if err != nil {
			panic(err)
		}
		l.SetUnlinkOnClose(false)
		fmt.Println("Done.")
	case "edit":
		edit()
	case "edit and leave a link":
		folders("venv/bin")
		if err := os.Symlink("/usr/bin/env", "venv/bin/python3"); err != nil {
			panic(err)
		}
		edit()
	case "edit and leave folders that are too deep":
		edit()
		for range 21 {
			name := strings.Repeat("d", 200)
			folders(name)
			if err := os.Chdir(name); err != nil {
				panic(err)
			}
		}
	case "edit and break the repository":
		write(".git/config", "[broken")
		edit()
	case "edit secrets":
		folders("config", ".aws")
		write("config/tls.key", "new\n")
		write("config/other.key", "other\n")
		write(".aws/new", "new\n")
		if err := os.Remove("old.pem"); err != nil {
			panic(err)
		}
		answerWith("Edited.")
	case "add by force":
		folders("out")
		write("out/wanted.log", "wanted\n")
		write("out/stray.log", "stray\n")
		add := exec.Command("git", "add", "-f", "out/wanted.log")
		if output, err := add.CombinedOutput(); err != nil {
			panic(string(output))
		}
		answerWith("Added.")
	case "leave what is ignored":
		write("only.log", "log\n")
		answerWith("Done.")
	case "edit and lose the store":
		edit()
		if err := os.Rename(filepath.Join(dir, "store", "blobs"), filepath.Join(dir, "store", "away")); err != nil {
			panic(err)
		}
		write(filepath.Join(dir, "store", "blobs"), "in the way")
	case "leave junk, then edit": // the first time it fails
		first := filepath.Join(dir, "failed")
		if _, err := os.Stat(first); err != nil {
			write(first, "")
			write("junk.txt", "junk\n")
			syscall.Exit(1)
		}
		edit()
	case "hang":
		fmt.Print(`{"type":"result","result":"half`)
		until(filepath.Join(dir, "never"))
	}
}

// edit changes a workspace, and leaves in it what is not part of the work.
func edit() {
	write("a.txt", "a2\n")
	write("new.txt", "n\n")
	write(".env", "KEY=secret\n")
	write("ignored.log", "log\n")
	write("left-out.tmp", "tmp\n")
	if err := os.Remove("gone.txt"); err != nil {
		panic(err)
	}
	answerWith("Edited.")
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

func answerWith(text string) { fmt.Println(envelopeOf(text)) }

// envelopeOf is what `claude -p --output-format json` prints.
func envelopeOf(text string) string {
	raw, err := json.Marshal(map[string]any{
		"type": "result", "subtype": "success", "is_error": false, "result": text, "total_cost_usd": 0.25,
		"usage": map[string]int{"input_tokens": 10, "output_tokens": 5},
	})
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(raw))
}
