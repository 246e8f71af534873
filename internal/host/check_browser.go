package host

import (
	"bytes"
	"cmp"
	"context"
	"os/exec"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/browser"
)

const (
	answersWithin = 10 * time.Second // a program that is asked for its version
	startsWithin  = 20 * time.Second // a browser
)

// browser starts the browser with a blank page, and stops it.
func (e *examiner) browser(ctx context.Context) {
	path, err := browser.Find(e.Settings.Browser)
	if err != nil {
		e.add(Warning, "browser", "browser",
			"sudo apt-get install chromium (Debian, Ubuntu), brew install --cask chromium (macOS), or set "+
				"PASSBOOK_BROWSER to its path",
			"there is no %s: screenshots are left out, and auditors get a page's source",
			cmp.Or(e.Settings.Browser, "Chromium"))
		return
	}
	output, err := ask(ctx, nil, path, "--version")
	if err != nil {
		output = path
	}
	page := browser.Page{HTML: []byte("<!DOCTYPE html><title>blank</title>"), Name: "a blank page"}
	request := browser.Request{Sizes: []browser.Size{{W: 320, H: 200}}, Kinds: []string{browser.Viewport}}
	if _, err := browser.Shoot(ctx, browser.Options{Exec: path, Timeout: startsWithin}, page, request); err != nil {
		e.add(Warning, "browser", "browser", "run it yourself: "+path+" --headless --screenshot about:blank",
			"%s does not take a picture: %v", output, err)
		return
	}
	e.ok("browser", "browser", "%s starts and takes a picture: %s", output, path)
}

// ask runs a program that prints a line and exits. Standard input is empty.
func ask(ctx context.Context, env []string, path string, args ...string) (string, error) {
	out, err := printed(ctx, env, path, args...)
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	return line, err
}

// printed runs a program, and returns its standard output, or without one its standard error.
func printed(ctx context.Context, env []string, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	var noise bytes.Buffer
	cmd.Env, cmd.WaitDelay, cmd.Stderr = env, time.Second, &noise
	out, err := cmd.Output()
	if len(bytes.TrimSpace(out)) == 0 {
		out = noise.Bytes()
	}
	return string(out), err
}
