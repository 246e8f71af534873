// Command victim is the worker and the starter with a counter, so that a test can kill them at a chosen point.
//
//	victim worker             polls as the program worker does
//	victim start FILE DIR     starts a run as `starter run --detach` does
//	victim scripted-agent     is the built-in agent
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/agent/scripted"
	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/e2e/point"
)

const agentVerb = "scripted-agent"

func main() {
	if len(os.Args) == 2 && os.Args[1] == agentVerb {
		os.Exit(scripted.Main(os.Stdin, os.Stdout, os.Stderr, os.Getenv))
	}
	if len(os.Args) > 1 && os.Args[1] == supervisor.Verb {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	if err := obey(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "victim:", err)
		os.Exit(1)
	}
}

func obey(ctx context.Context, args []string) error {
	plan, err := point.Find()
	if err != nil {
		return err
	}
	settings, err := config.Load(nil)
	if err != nil {
		return err
	}
	conn, err := host.FindConnection(settings)
	if err != nil {
		return err
	}
	id, err := host.HostID(settings.StateDir)
	if err != nil {
		return err
	}
	client, err := conn.Dial(ctx, "", slog.New(slog.NewTextHandler(os.Stderr,
		&slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	defer client.Close()
	v := victim{plan: plan, counter: point.NewCounter(plan), settings: settings}
	switch {
	case len(args) == 1 && args[0] == "worker":
		return v.work(ctx, host.WorkerConfig{
			Operator: operations.Operator{Settings: settings, Client: client, Host: id}})
	case len(args) == 3 && args[0] == "start":
		o := operations.Operator{Client: client, Namespace: conn.Options.Namespace, Settings: settings, Host: id,
			Build: "test", By: "test"}
		return v.start(ctx, o, args[1], args[2])
	}
	return errors.New("usage: victim worker, start FILE DIR, or " + agentVerb)
}

type victim struct {
	plan     point.Plan
	counter  *point.Counter
	settings config.Settings
}

// work polls until it is killed or stopped.
func (v victim) work(ctx context.Context, o host.WorkerConfig) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	worker.SetBinaryChecksum(build.ID(self))
	o.Scripted = []string{self, agentVerb}
	o.Adjust = v.adjust
	o.Ready = func() error { return host.AnnounceReady(v.settings.StateDir, "victim", time.Now()) }
	return host.RunWorker(ctx, o)
}

// adjust adds the counter to everything that writes.
func (v victim) adjust(c *activities.Config) {
	c.OnStep = func(s activities.Step) error {
		return v.counter.Step(disk.Step{Op: disk.Op(s.Op), Path: s.Path, Data: s.Data})
	}
	c.OnPoint = v.reached
}

func (v victim) reached(p activities.Point, call string) {
	if v.plan.Forget && p == activities.PointRequested {
		if err := v.forget(call); err != nil {
			panic(err)
		}
	}
	if err := v.counter.Reach(string(p), call, nil); err != nil {
		panic(err)
	}
}

// forget deletes the result of a call, and the files of its finished deliveries. A running delivery stays.
func (v victim) forget(call string) error {
	err := os.RemoveAll(filepath.Join(v.settings.StateDir, "store", "calls", filepath.FromSlash(call), "result"))
	exits, missing := filepath.Glob(filepath.Join(v.settings.Scratch(), strings.ReplaceAll(call, "/", "_"), "*",
		supervisor.ExitFile))
	for _, exit := range exits {
		err = errors.Join(err, os.RemoveAll(filepath.Dir(exit)))
	}
	return errors.Join(err, missing)
}

// start has one more point after the run is started and before the output is printed.
func (v victim) start(ctx context.Context, o operations.Operator, file, dir string) error {
	def, err := operations.Load(os.DirFS(filepath.Dir(file)), filepath.Base(file), file)
	if err != nil {
		return err
	}
	place := rundir.At(dir)
	place.Disk = v.counter.Disk()
	st, err := o.Start(ctx, def, place)
	if err != nil {
		return err
	}
	return v.counter.Reach("started", st.RunID, nil)
}
