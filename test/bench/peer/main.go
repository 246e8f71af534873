package peer

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Options are the flags of a program.
type Options struct {
	Dir     string // for the engine's files
	Address string // of the engine's server or database
}

// Opener starts an engine with workers, and returns how to close it.
type Opener func(ctx context.Context, o Options, steps *Steps) (e Engine, closer func() error, err error)

// Main is the main function of a program.
func Main(open Opener) {
	if err := run(open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(open Opener) (err error) {
	var o Options
	flag.StringVar(&o.Dir, "dir", ".", "folder for the engine's files")
	flag.StringVar(&o.Address, "address", "", "address of the engine's server or database")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	steps := &Steps{}
	e, closer, err := open(ctx, o, steps)
	if err != nil {
		return fmt.Errorf("open the engine: %w", err)
	}
	defer func() { err = errors.Join(err, closer()) }()
	return Serve(ctx, e, steps, os.Stdin, os.Stdout)
}
