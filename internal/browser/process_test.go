package browser_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/browser"
)

var endless = browser.Page{HTML: []byte(`<!doctype html><script>for (;;) {}</script>`), Name: "endless.html"}

func TestMain(m *testing.M) {
	if temp := os.Getenv("BROWSER_TEST_WORKER"); temp != "" {
		_, err := browser.Shoot(context.Background(), browser.Options{TempDir: temp}, endless, viewOnly)
		panic(err)
	}
	os.Exit(m.Run())
}

// script writes a fake browser.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fake-browser")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700))
	return path
}

func TestBrowserFailures(t *testing.T) {
	tests := []struct {
		name string
		body string
		is   error
		want string
	}{
		{"hangs", "sleep 1000 & trap '' TERM INT HUP; sleep 1000; sleep 1000", browser.ErrTimeout,
			"not done after 300ms"},
		{"dies at once", "echo 'no usable sandbox!' >&2; exit 3", nil, "no usable sandbox!"},
		{"is not a browser", "cat <&3 >/dev/null; echo hello", browser.ErrTimeout, "fake-browser"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			temp := t.TempDir()
			o := browser.Options{Exec: script(t, tt.body), TempDir: temp, Timeout: 300 * time.Millisecond}
			if tt.is == nil {
				o.Timeout = 0
			}
			res, err := browser.Shoot(t.Context(), o, browser.Page{Name: "artifact.html"}, viewOnly)
			require.ErrorContains(t, err, "screenshots of artifact.html: ")
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, tt.is != nil, errors.Is(err, browser.ErrTimeout))
			require.Empty(t, res)
			requireGone(t, temp)
			require.Empty(t, running(o.Exec, ""))
		})
	}
}

func TestEndlessPage(t *testing.T) {
	needBrowser(t)
	var err error
	var temp string
	for limit := 2 * time.Second; limit < time.Minute; limit *= 2 {
		temp = t.TempDir()
		_, err = browser.Shoot(t.Context(), browser.Options{TempDir: temp, Timeout: limit}, endless, viewOnly)
		require.ErrorIs(t, err, browser.ErrTimeout)
		if strings.Contains(err.Error(), "load the page") {
			break
		}
	}
	require.ErrorContains(t, err, "screenshots of endless.html")
	require.ErrorContains(t, err, "at 320x200: load the page")
	requireGone(t, temp)
}

func TestLongTempDir(t *testing.T) {
	needBrowser(t)
	temp := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	require.NoError(t, os.Mkdir(temp, 0o700))
	t.Setenv("TMPDIR", temp)
	before, err := filepath.Glob("/tmp/passbook-socket-*")
	require.NoError(t, err)
	res, err := browser.Shoot(t.Context(), browser.Options{},
		browser.Page{Name: "artifact.html", HTML: []byte("<p>short</p>")}, viewOnly)
	require.NoError(t, err)
	require.Len(t, res.Shots, 1)
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
	after, err := filepath.Glob("/tmp/passbook-socket-*")
	require.NoError(t, err)
	require.Subset(t, before, after, "files of the browser are left")
}

func TestCallerCancels(t *testing.T) {
	needBrowser(t)
	temp := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		waitFor(temp, "--type=renderer")
	}()
	_, err := browser.Shoot(ctx, browser.Options{TempDir: temp}, endless, viewOnly)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, browser.ErrTimeout)
	requireGone(t, temp)
}

func TestKilled(t *testing.T) {
	needBrowser(t)
	tests := []struct{ name, mark, want string }{
		{"the browser", "--remote-debugging-pipe", "killed"},
		{"the tab", "--type=renderer", "crashed the browser's tab"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			temp := t.TempDir()
			busy := make(chan struct{})
			go func() {
				defer close(busy)
				waitForLoop(temp)
				// a busy machine lets other renderers of the browser look like the tab, so all are killed
				for _, pid := range running(temp, tt.mark) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}()
			_, err := browser.Shoot(t.Context(), browser.Options{TempDir: temp, Timeout: time.Minute}, endless,
				viewOnly)
			<-busy
			require.ErrorContains(t, err, tt.want)
			require.NotErrorIs(t, err, browser.ErrTimeout)
			requireGone(t, temp)
		})
	}
}

func TestBrowserDiesWithWorker(t *testing.T) {
	needBrowser(t)
	temp := t.TempDir()
	worker := exec.Command(os.Args[0])
	worker.Env = append(os.Environ(), "BROWSER_TEST_WORKER="+temp)
	require.NoError(t, worker.Start())
	require.NotEmpty(t, waitFor(temp, "--type=renderer"))
	require.NoError(t, worker.Process.Kill())
	_ = worker.Wait()
	require.Eventually(t, func() bool { return len(running(temp, "")) == 0 }, 10*time.Second, 10*time.Millisecond)
}

func TestNoBrowser(t *testing.T) {
	_, err := browser.Shoot(t.Context(), browser.Options{Exec: "/nowhere/chromium"},
		browser.Page{Name: "artifact.html"}, viewOnly)
	require.ErrorIs(t, err, browser.ErrNotFound)
	require.ErrorContains(t, err, "/nowhere/chromium")
	require.ErrorContains(t, err, "apt-get install chromium")
}

func TestFind(t *testing.T) {
	fake := script(t, "exit 0")
	got, err := browser.Find(fake)
	require.NoError(t, err)
	require.Equal(t, fake, got)

	dir := t.TempDir()
	require.NoError(t, os.Symlink(fake, filepath.Join(dir, "chromium")))
	t.Setenv("PATH", dir)
	got, err = browser.Find("")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "chromium"), got)

	require.NoError(t, os.Chmod(fake, 0o600))
	_, err = browser.Find(fake)
	require.ErrorIs(t, err, browser.ErrNotFound, "not executable")
}

// running returns the ids of the processes whose command line has a text and a mark. A process that is dead but not yet
// collected has none.
func running(text, mark string) []int {
	var found []int
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(line, []byte(text)) || !strings.Contains(string(line), mark) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		found = append(found, pid)
	}
	return found
}

// waitFor waits until a browser with its profile in temp has processes with a mark, and returns all of them.
func waitFor(temp, mark string) []int {
	for range 2000 {
		if pids := running(temp, mark); len(pids) > 0 {
			return pids
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// waitForLoop waits until a renderer has used a second of CPU, which only the page that never ends does.
func waitForLoop(temp string) {
	const ticks = 100 // of 10 ms
	for late := time.Now().Add(50 * time.Second); time.Now().Before(late); time.Sleep(5 * time.Millisecond) {
		for _, pid := range running(temp, "--type=renderer") {
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
			if len(f) < 12 {
				continue
			}
			if used, _ := strconv.Atoi(string(f[11])); used > ticks {
				return
			}
		}
	}
}

// requireGone requires that a call left no process and no file.
func requireGone(t *testing.T, temp string) {
	t.Helper()
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left, "a profile was left")
	require.Empty(t, running(temp, ""), "a process was left")
}
