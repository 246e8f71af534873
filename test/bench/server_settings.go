package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/passbook-run/passbook/internal/local"
)

// variant is a start of the embedded server with other settings than its own.
type variant struct {
	name string
	args []string
}

func dynamic(pairs ...string) (args []string) {
	for _, pair := range pairs {
		args = append(args, "--dynamic-config-value", pair)
	}
	return args
}

// otherBuild is the row of -other.
const otherBuild = "the other build"

// variants are measured one by one beside the first, which changes nothing.
var variants = []variant{
	{"as Passbook starts it", nil},
	{"20 polls of a queue a second (Temporal's default)",
		dynamic("history.transferProcessorMaxPollRPS=20", "history.timerProcessorMaxPollRPS=20")},
	{"4 partitions of a task queue (Temporal's default)",
		dynamic("matching.numTaskqueueReadPartitions=4", "matching.numTaskqueueWritePartitions=4")},
	{"timers rounded to a second (Temporal's default)", dynamic(`history.timerProcessorMaxTimeShift="1s"`)},
	{"no eager activities", dynamic("system.enableActivityEagerExecution=false")},
	{"no persistence rate limits", dynamic("frontend.persistenceMaxQPS=0", "history.persistenceMaxQPS=0",
		"matching.persistenceMaxQPS=0")},
	{"4 shards", []string{"--history-shards", "4"}},
	{"4 connections to SQLite", []string{"--sqlite-connections", "4"}},
	{"pages of 8 KB", []string{"--sqlite-pragma", "page_size=8192"}},
	{"pages of 16 KB", []string{"--sqlite-pragma", "page_size=16384"}},
	{"cache of 64 MB", []string{"--sqlite-pragma", "cache_size=-65536"}},
	{"memory map of 256 MB", []string{"--sqlite-pragma", "mmap_size=268435456"}},
	{"WAL checkpoint at 100 pages (1,000)", []string{"--sqlite-pragma", "wal_autocheckpoint=100"}},
	{"WAL checkpoint at 10,000 pages", []string{"--sqlite-pragma", "wal_autocheckpoint=10000"}},
	{"synchronous=normal: a power failure can lose commits", []string{"--sqlite-pragma", "synchronous=normal"}},
}

// vary measures workflows of five empty steps, with the plain SDK, on servers with other settings.
func vary(ctx context.Context, s settings, out io.Writer) (err error) {
	if s.Other != "" {
		if _, err := exec.LookPath(s.Other); err != nil {
			return fmt.Errorf("-other: %w", err)
		}
	}
	dir, err := os.MkdirTemp(s.Temp, "passbook-settings-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	programs := filepath.Join(dir, "bin")
	if err := build(ctx, filepath.Join(s.Root, "tools/peers"), programs, "./temporal"); err != nil {
		return err
	}
	server, err := local.Build(ctx, local.Options{StateDir: filepath.Join(dir, "state"), SourceDir: s.Root},
		func(line string) { fmt.Fprintln(os.Stderr, line) })
	if err != nil {
		return err
	}
	t := &table{amounts: full, reps: s.Reps, readings: map[string]map[figure][]reading{}}
	if s.Quick {
		t.amounts = brief
	}
	t.contenders, err = s.selected(s.servers(server, filepath.Join(programs, "temporal")))
	if err != nil {
		return err
	}
	err = t.measure(ctx, dir, "", func(m *trial, ctx context.Context) {
		if err := m.open(ctx, "five", measureFive); err != nil {
			m.record(figOne, 0, err)
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s; medians of %d, in turn; load average %s before, %s after. In brackets: divided by the first "+
		"row.\n\n", where(), s.Reps, t.before, t.after)
	return t.writeVariants(out)
}

// servers returns the rows: the server and its variants. The first is what the others are divided by.
func (s settings) servers(server, program string) (rows []contender) {
	row := func(name, path string, args []string) {
		rows = append(rows, contender{name: name, open: func(dir, _ string) engine {
			return &peerProgram{path: program, dir: dir, server: &variedServer{path: path, dir: dir, args: args}}
		}})
	}
	for i, v := range variants {
		row(v.name, server, v.args)
		if i == 0 && s.Other != "" {
			row(otherBuild, s.Other, nil)
		}
	}
	return rows
}

func (t *table) writeVariants(out io.Writer) error {
	fmt.Fprintf(out, "| settings of the server | five empty steps | %d workflows at once: workflows a second | bytes "+
		"of a workflow |\n|---|--:|--:|--:|\n", atOnce)
	for _, c := range t.contenders {
		fmt.Fprintf(out, "| %s |", c.name)
		for _, column := range []row{{figure: figOne, format: seconds}, {figure: figMany, format: plain},
			{figure: figBytes, format: plain}} {
			value, err := t.value(c, column.figure)
			base, errBase := t.value(t.contenders[0], column.figure)
			if err := errors.Join(err, errBase); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			fmt.Fprintf(out, " %s (%s) |", column.format(value), plain(value/base))
		}
		fmt.Fprintln(out)
	}
	return nil
}

// measureFive measures workflows of five empty steps, and what they leave in the files of the stopped server.
func measureFive(ctx context.Context, s *session) {
	if _, err := s.five(ctx, "warm", 2, 1); err != nil {
		s.record(figOne, 0, err)
		return
	}
	r, err := s.five(ctx, "one", s.Latency, 1)
	s.record(figOne, median(r.Each).Seconds(), err)
	r, err = s.five(ctx, "many", s.Many, atOnce)
	s.record(figMany, float64(s.Many)/r.Wall.Seconds(), err)
	if err := s.stop(ctx); err != nil {
		s.record(figBytes, 0, err)
		return
	}
	stored, err := s.stored()
	s.record(figBytes, float64(stored["database"])/float64(2+s.Latency+s.Many), err)
}

// variedServer is the embedded server with further arguments, for the plain SDK.
type variedServer struct {
	path, dir string
	args      []string
	d         *daemon
}

func (v *variedServer) start(ctx context.Context) (string, []string, error) {
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	address := "127.0.0.1:" + port
	v.d, err = launch(ctx, exec.Command(v.path, append([]string{"--insecure", "--headless", "--port", port,
		"--db-filename", filepath.Join(v.dir, "temporal.db")}, v.args...)...),
		func() error { return reachable(ctx, address) })
	return address, []string{"TEMPORAL_ADDRESS=" + address}, err
}

func (v *variedServer) stop(context.Context) error {
	if v.d == nil {
		return nil
	}
	err := v.d.stop(syscall.SIGTERM)
	v.d = nil
	return err
}

func (v *variedServer) processes() []int { return []int{v.d.cmd.Process.Pid} }

func (v *variedServer) stored() (int64, error) { return bytesIn(v.dir) }

// reachable returns nil once a server answers.
func reachable(ctx context.Context, address string) error {
	c, err := client.NewLazyClient(client.Options{HostPort: address, Logger: log.NewStructuredLogger(
		slog.New(slog.DiscardHandler))})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err = c.CheckHealth(ctx, nil)
	return err
}
