package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/test/realcli"
)

const (
	passbookName = "Passbook"
	bashName     = "bash loop"
)

// full and quick are the amounts of a measurement, and of a trial of the command.
var (
	full = amounts{Latency: 20, Many: 200, Passes: 56, Steps: 1000, Waiting: 1000, Call: 2 * time.Second,
		Patience: 20 * time.Minute}
	brief = amounts{Latency: 2, Many: 20, Passes: 8, Steps: 16, Waiting: 10, Call: time.Second / 2, Patience: time.Minute}
)

// compare measures Passbook and its peers in turn, and writes the table of docs/peers.md.
func compare(ctx context.Context, s settings, out io.Writer) (err error) {
	dir, err := os.MkdirTemp(s.Temp, "passbook-peers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil { // PostgreSQL's user has its files in it
		return err
	}
	programs := filepath.Join(dir, "bin")
	if err := buildPeers(ctx, s, programs); err != nil {
		return err
	}
	all, err := contenders(ctx, s, programs)
	if err != nil {
		return err
	}
	t := &table{contenders: all, amounts: full, reps: s.Reps, readings: map[string]map[figure][]reading{}}
	if s.Quick {
		t.amounts = brief
	}
	if err := t.measure(ctx, dir, filepath.Join(programs, "agent"), (*trial).run); err != nil {
		return err
	}
	t.write(out)
	return nil
}

// measure makes the measurements of all contenders in turn.
func (t *table) measure(ctx context.Context, dir, agent string, run func(*trial, context.Context)) error {
	t.before = load()
	for rep := range t.reps {
		for i, c := range t.contenders {
			if c.missing != nil {
				continue
			}
			fmt.Fprintf(os.Stderr, "bench: %s, repetition %d of %d\n", c.name, rep+1, t.reps)
			m := trial{amounts: t.amounts, contender: c, agent: agent,
				dir: filepath.Join(dir, fmt.Sprintf("%d-%d", rep, i)), readings: map[figure]reading{}}
			run(&m, ctx)
			t.add(c.name, m.readings)
			if err := errors.Join(context.Cause(ctx), os.RemoveAll(m.dir)); err != nil {
				return err
			}
		}
	}
	t.after = load()
	return nil
}

// buildPeers builds Passbook's programs and those of the peers.
func buildPeers(ctx context.Context, s settings, programs string) error {
	if err := buildPassbook(ctx, s.Root, programs); err != nil {
		return err
	}
	return build(ctx, filepath.Join(s.Root, "tools/peers"), programs, "./...")
}

// buildPassbook builds Passbook's programs and the agent.
func buildPassbook(ctx context.Context, root, programs string) error {
	if err := command(ctx, root, "scripts/programs", programs); err != nil {
		return err
	}
	return build(ctx, root, programs, "./test/bench/agent")
}

// build builds programs of a module into a folder.
func build(ctx context.Context, module, programs string, packages ...string) error {
	args := append([]string{"build", "-buildvcs=false", "-trimpath", "-o", programs + string(filepath.Separator)}, packages...)
	return command(ctx, module, "go", args...)
}

func command(ctx context.Context, folder, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs of %s: %w\n%s", folder, err, output)
	}
	return nil
}

// contenders are the columns of the table. What is not installed stays in it, with the reason.
func contenders(ctx context.Context, s settings, programs string) ([]contender, error) {
	server, err := serverVersion(ctx, s, filepath.Join(programs, "state"))
	if err != nil {
		return nil, err
	}
	program := func(name string) string { return filepath.Join(programs, name) }
	var failed []error
	module := func(name, path string) string {
		v, err := versionOf(program(name), path)
		failed = append(failed, err)
		return v
	}
	sdk := module("temporal", "go.temporal.io/sdk")
	dbos := module("dbos", "github.com/dbos-inc/dbos-transact-golang")
	all := []contender{
		{
			name: passbookName, agents: true, version: checkout(ctx, s.Root) + ", " + server,
			durable: "fsync of each commit (SQLite, WAL, synchronous=full) and of the journal",
			open:    func(dir, logs string) engine { return newPassbook(s, programs, dir, logs) },
		},
		{
			name: bashName, version: firstLine(exec.CommandContext(ctx, "bash", "--version")),
			durable: "fsync after each step (sync)", open: newBashLoop,
		},
		{
			name: "Temporal SDK", version: "SDK " + sdk + ", " + server,
			durable: "fsync of each commit (Passbook's server: SQLite, WAL, synchronous=full)",
			open: func(dir, _ string) engine {
				return &peerProgram{path: program("temporal"), dir: dir, server: &temporalServer{s.Root,
					filepath.Join(dir, "state")}}
			},
		},
		{
			name: "DBOS, SQLite", version: dbos, durable: "WAL, synchronous=normal: no fsync of a commit",
			open: func(dir, _ string) engine {
				return &peerProgram{path: program("dbos"), dir: dir, address: "sqlite:" + filepath.Join(dir, "dbos.sqlite")}
			},
		},
		postgresContender(ctx, dbos, program("dbos")),
		{
			name: "go-workflows", version: module("goworkflows", "github.com/cschleiden/go-workflows"),
			durable: "fsync of each commit (SQLite, WAL, synchronous=full)", detection: 2 * time.Minute,
			open: func(dir, _ string) engine { return &peerProgram{path: program("goworkflows"), dir: dir} },
		},
		restateContender(ctx, module("restate", "github.com/restatedev/sdk-go"), program("restate")),
	}
	all, err = s.selected(all)
	return all, errors.Join(append(failed, err)...)
}

// selected returns those that -only names.
func (s settings) selected(all []contender) (some []contender, err error) {
	if len(s.Only) == 0 {
		return all, nil
	}
	var names, unknown []string
	for _, c := range all {
		if names = append(names, c.name); slices.Contains(s.Only, c.name) {
			some = append(some, c)
		}
	}
	for _, name := range s.Only {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		err = fmt.Errorf("-only names %q; there are %q", unknown, names)
	}
	return some, err
}

func postgresContender(ctx context.Context, dbos, path string) contender {
	bin, err := findPostgres()
	c := contender{name: "DBOS, PostgreSQL", version: dbos, durable: "fsync of each commit (synchronous_commit=on)",
		missing: err}
	if err == nil {
		c.version += ", " + firstLine(exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version"))
	}
	c.open = func(dir, _ string) engine {
		return &peerProgram{path: path, dir: dir, server: &postgres{bin: bin, dir: dir}}
	}
	return c
}

func restateContender(ctx context.Context, sdk, path string) contender {
	cli := realcli.RestateServer()
	c := contender{name: "Restate", version: "SDK " + sdk + ", restate-server " + cli.Version,
		durable: "fsync of its log (RocksDB WAL)"}
	if c.missing = cli.Install(ctx); c.missing != nil {
		return c
	}
	argv, err := cli.Argv()
	c.missing = err
	c.open = func(dir, _ string) engine {
		return &peerProgram{path: path, dir: dir, server: &restateServer{path: argv[0], dir: dir}}
	}
	return c
}

// serverVersion builds the embedded server unless it is there.
func serverVersion(ctx context.Context, s settings, state string) (string, error) {
	path, err := local.Build(ctx, local.Options{StateDir: state, SourceDir: s.Root},
		func(line string) { fmt.Fprintln(os.Stderr, line) })
	if err != nil {
		return "", err
	}
	v, err := local.Version(ctx, path)
	return "Temporal server " + v, err
}

// versionOf reads the version of a module in a program.
func versionOf(program, module string) (string, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "", err
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version, nil
		}
	}
	return "", fmt.Errorf("%s has no module %s", program, module)
}

// checkout is the commit that is measured.
func checkout(ctx context.Context, root string) string {
	return firstLine(exec.CommandContext(ctx, "git", "-c", "safe.directory=*", "-C", root, "describe", "--always",
		"--dirty"))
}

// firstLine is the first line that a program prints, or why there is none.
func firstLine(cmd *exec.Cmd) string {
	out, err := cmd.Output()
	if err != nil {
		return err.Error()
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// load is the load average of one minute, or empty where the system does not show it.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// where describes the machine.
func where() string {
	return fmt.Sprintf("%s/%s, %d CPUs", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}
