// Command devserver is the Temporal server and Web UI that Passbook starts on a machine that has none.
//
// It understands the command line of `temporal server start-dev`, so either can stand in for the other. It promises
// more: every commit is on disk before it is acknowledged (WAL, synchronous=full), so kill -9 loses nothing; closed
// runs are kept for 90 days; it ends when its database file is removed; and one JSON line on stdout reports its address when it is ready. It listens on
// loopback, and makes no outgoing connections.
//
// It is a separate module and process: workers and the CLI stay small, and survive its crash.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitOK    = 0
	exitFault = 1
	exitUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "devserver:", err)
		return exitUsage
	case opts.version:
		fmt.Fprintln(stdout, versionLine())
		return exitOK
	}
	if err := serve(ctx, opts, stdout); err != nil {
		fmt.Fprintln(stderr, "devserver:", err)
		return exitFault
	}
	return exitOK
}

// serve runs the server from the lock on its database to the end of its context.
func serve(ctx context.Context, opts options, stdout io.Writer) (err error) {
	db, err := openDatabase(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := start(opts, db)
	if err != nil {
		return err
	}
	err = s.awaitHealth(ctx)
	if err == nil {
		err = s.announce(stdout, opts.db)
	}
	if err == nil {
		err = db.awaitRemoval(ctx)
	}
	if ctx.Err() != nil {
		err = nil // asked to stop, perhaps while still starting
	}
	return errors.Join(err, s.stop())
}
