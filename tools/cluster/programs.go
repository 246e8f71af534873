package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is a program of Temporal, built from a module that pins it.
type program struct{ name, module, pkg string }

var programs = []program{
	{"temporal-server", "devserver", "go.temporal.io/server/cmd/server"},
	{"temporal-sql-tool", "devserver", "go.temporal.io/server/cmd/tools/sql"},
	{"temporal-ui-server", "devserver", "github.com/temporalio/ui-server/v2/cmd/server"},
	temporalCLI,
}

var temporalCLI = program{"temporal", "tools", "github.com/temporalio/cli/cmd/temporal"}

// prepare creates the folder, the programs and the database's files, and adds the programs to PATH.
func prepare(ctx context.Context, s settings, processes []process) error {
	if err := makeFolders(s); err != nil {
		return err
	}
	postgres, err := findPostgres()
	if err != nil {
		return err
	}
	for _, p := range programs {
		if _, err := build(ctx, s, p); err != nil {
			return err
		}
	}
	if err := buildWorker(ctx, s); err != nil {
		return err
	}
	if err := copyUIConfig(ctx, s); err != nil {
		return err
	}
	path := []string{s.Cache, postgres, os.Getenv("PATH")}
	if err := os.Setenv("PATH", strings.Join(path, string(filepath.ListSeparator))); err != nil {
		return err
	}
	return initDatabase(ctx, s, processes)
}

// makeFolders refuses a folder of another user, because the default folder has a predictable name.
func makeFolders(s settings) error {
	if err := os.MkdirAll(s.Dir, 0o711); err != nil {
		return err
	}
	if err := ours(s.Dir); err != nil {
		return err
	}
	for _, dir := range []string{"log", "runs", "state", filepath.Join("ui", "config")} {
		if err := os.MkdirAll(filepath.Join(s.Dir, dir), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// archivedCLI is tctl, which is no longer maintained: it requires the versions of its module, and a linker that lets
// an old library access Go's runtime.
const archivedCLI = "go.temporal.io/server/cmd/tools/cli@v1.15.2"

// buildTctl installs tctl beside the other programs. It supports queries, signals, lists and resets, but no updates.
func buildTctl(ctx context.Context, s settings) (string, error) {
	out := filepath.Join(s.Cache, "tctl")
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	fmt.Fprintln(os.Stderr, "building tctl (first time only, takes some minutes)")
	bin := filepath.Join(s.Cache, "tctl.new")
	cmd := exec.CommandContext(ctx, "nice", "-n", "15", "go", "install", "-buildvcs=false", "-ldflags=-checklinkname=0",
		archivedCLI)
	cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=")
	cmd.Dir = s.Root
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build tctl: %w\n%s", err, output)
	}
	if err := os.Rename(filepath.Join(bin, "cli"), out); err != nil {
		return "", err
	}
	return out, os.Remove(bin)
}

// build brings a program up to date, which takes a second if it is up to date already. The build runs at low priority.
func build(ctx context.Context, s settings, p program) (string, error) {
	if err := os.MkdirAll(s.Cache, 0o755); err != nil {
		return "", err
	}
	out := filepath.Join(s.Cache, p.name)
	if _, err := os.Stat(out); err != nil {
		fmt.Fprintf(os.Stderr, "building %s (first time only, takes some minutes)\n", p.name)
	}
	return out, compile(ctx, filepath.Join(s.Root, p.module), "-o", out, p.pkg)
}

func buildWorker(ctx context.Context, s settings) error {
	return compile(ctx, s.Root, "-o", filepath.Join(s.Root, "bin")+"/", "./starter", "./worker",
		"./internal/supervisor/passbook-call")
}

func compile(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", "15", "go", "build", "-buildvcs=false"}, args...)...)
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", args[len(args)-1], err, output)
	}
	return nil
}

// copyUIConfig copies the UI's configuration from its module: that of its image, which reads the environment. The image
// listens on all interfaces.
func copyUIConfig(ctx context.Context, s settings) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/temporalio/ui-server/v2")
	cmd.Dir = filepath.Join(s.Root, "devserver")
	cmd.Stderr = io.Discard
	module, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("find the Web UI's module: %w", err)
	}
	config, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "config", "docker.yaml"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Dir, "ui", "config", "docker.yaml"),
		append(config, "\nhost: "+loopback+"\n"...), 0o600)
}
