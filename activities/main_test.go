package activities

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The test binary, started again with this variable, is the agent; the other one names a folder that test and agents share.
const (
	playing = "ACTIVITIES_TEST_PLAYS"
	folder  = "ACTIVITIES_TEST_FOLDER"
)

func TestMain(m *testing.M) {
	play, ok := os.LookupEnv(playing)
	if !ok {
		os.Exit(m.Run())
	}
	dir := os.Getenv(folder)
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("started-%d", os.Getpid())), nil, 0o600); err != nil {
		panic(err)
	}
	switch play {
	case "answer":
		answerWith("An answer.")
	case "wait": // until the test says go
		until(filepath.Join(dir, "go"))
		answerWith("An answer.")
	case "write":
		write("page.html", "<!DOCTYPE html>\n<html>written</html>\n")
		answerWith("I changed the page.")
	case "lose the store": // while it answers
		if err := os.Rename(filepath.Join(dir, "store", "blobs"), filepath.Join(dir, "store", "away")); err != nil {
			panic(err)
		}
		write(filepath.Join(dir, "store", "blobs"), "in the way")
		answerWith("An answer.")
	case "edit":
		edit()
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
			os.Exit(1)
		}
		edit()
	case "hang":
		fmt.Print(`{"type":"result","result":"half`)
		until(filepath.Join(dir, "never"))
	}
}

// edit changes a workspace, and leaves in it what is no part of the work.
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
