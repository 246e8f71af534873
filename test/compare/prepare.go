package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/passbook-run/passbook/test/modelapi"
	"github.com/passbook-run/passbook/test/realcli"
)

//go:embed claude.sh
var scriptedClaude string

const ralphyVersion = "4.7.2"

var claudeVersion = realcli.Claude().Version

// prepare builds and installs what is compared.
func (h *harness) prepare(ctx context.Context) error {
	bin := filepath.Join(h.dir, "bin")
	if _, err := install(ctx, h.root, "scripts/programs", bin); err != nil {
		return err
	}
	if err := h.writeAgent(bin); err != nil {
		return err
	}
	built, err := install(ctx, h.root, filepath.Join(bin, "starter"), "server", "build")
	if err != nil {
		return err
	}
	h.server = built[strings.LastIndex(built, " ")+1:]
	if argv, err := realcli.Claude().Argv(); err == nil {
		h.claude = argv[0]
	}
	if h.ralphy != "" {
		h.ralphy, err = filepath.Abs(h.ralphy)
		return err
	}
	npm := filepath.Join(h.dir, "npm")
	if _, err := install(ctx, h.dir, "npm", "install", "--no-audit", "--no-fund", "--prefix", npm, "ralphy-cli@"+ralphyVersion); err != nil {
		return err
	}
	// the program that bin.js starts: its death is tried, not that of node
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	h.ralphy = filepath.Join(npm, "node_modules", "ralphy-cli", "dist", "ralphy-"+runtime.GOOS+"-"+arch)
	return os.Chmod(h.ralphy, 0o700) //nolint:gosec // a program
}

// writeAgent adds the scripted claude to a folder of programs.
func (h *harness) writeAgent(bin string) error {
	return errors.Join(os.MkdirAll(bin, 0o700),
		os.WriteFile(filepath.Join(bin, "claude"), []byte(scriptedClaude), 0o700)) //nolint:gosec // a program
}

// realKilled kills the worker while Claude Code waits for the second of two answers, and counts its requests.
func realKilled(e *env, t tool, r *cell) error {
	command := "echo done > a.done"
	if _, is := t.(*ralphy); is { // its prompt asks for a commit
		command = commits("Commit your changes. "+oneTask, command)
	}
	api := modelapi.NewAnthropic(modelapi.Turn{Tool: "Bash", Input: map[string]string{"command": command,
		"description": "Write the file"}}, modelapi.Turn{Text: "STATUS: done", Delay: 15 * time.Second})
	defer api.Close()
	api.ByResults()
	real, err := realcli.Claude().Argv()
	if err != nil {
		return err
	}
	bin := filepath.Join(e.dir, "real")
	home := filepath.Join(e.dir, "home")
	if err := errors.Join(os.MkdirAll(bin, 0o700), os.Symlink(real[0], filepath.Join(bin, "claude")),
		realcli.Claude().WriteHome(home, api.URL)); err != nil {
		return err
	}
	for i, v := range e.environ {
		if path, is := strings.CutPrefix(v, "PATH="); is {
			e.environ[i] = "PATH=" + bin + ":" + path
		}
	}
	e.environ = append(e.environ, realcli.Claude().Environ(api.URL)...)
	if err := t.start(e); err != nil {
		return err
	}
	requests := func() int { asked, _ := api.Asked(); return len(asked) }
	if err := e.await("the second request", func() bool { return requests() == 2 }); err != nil {
		return err
	}
	if err := errors.Join(e.killDriver(t), t.restart(e), e.work(t)); err != nil {
		return err
	}
	r.Calls = requests()
	r.Lost = fmt.Sprintf("%d requests lost", r.Calls-2)
	return nil
}

func machine() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown")
	}
	return fmt.Sprintf("%s/%s, %d CPUs, load average %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), strings.Fields(string(load))[0])
}
