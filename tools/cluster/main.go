// Command cluster runs the services of docker-compose.yml as plain processes on this machine: a Temporal cluster with a
// separate PostgreSQL, and two workers. `make cluster`, `make cluster-demo` and `make cluster-stop` call it;
// docs/cluster.md describes how to use it.
//
// Everything listens on loopback only and is in one folder. Starting again starts only what does not run, and stopping
// ends only processes that it started. It is for trials and tests; it does not supervise its processes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
)

// settings are the location and the size of the cluster.
type settings struct {
	Root    string // the checkout
	Dir     string // all files of the cluster, including logs
	Cache   string // programs
	Offset  int    // added to every port of docker-compose.yml
	Workers int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	s, err := fromEnvironment()
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.StringVar(&s.Root, "root", "..", "the checkout")
	kill := flags.Bool("kill", false, "demo: kill a worker in the middle of the run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.Root, err = filepath.Abs(s.Root); err != nil {
		return err
	}
	switch flags.Arg(0) {
	case "start":
		return start(ctx, s)
	case "stop":
		return stopAll(ctx, s)
	case "demo":
		return demo(ctx, s, *kill)
	case "temporal-cli":
		return printed(build(ctx, s, temporalCLI))
	case "tctl":
		return printed(buildTctl(ctx, s))
	default:
		return errors.New("missing command: start, stop, demo, temporal-cli or tctl")
	}
}

// printed prints the path of a program.
func printed(path string, err error) error {
	if err == nil {
		fmt.Println(path)
	}
	return err
}

// fromEnvironment reads CLUSTER_DIR, CLUSTER_PORT_OFFSET and CLUSTER_WORKERS.
func fromEnvironment() (settings, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return settings{}, fmt.Errorf("find the cache: %w; set HOME or XDG_CACHE_HOME", err)
	}
	s := settings{Dir: os.Getenv("CLUSTER_DIR"), Cache: filepath.Join(cache, "passbook", "cluster")}
	if s.Dir == "" {
		s.Dir = filepath.Join("/var/tmp", "passbook-cluster-"+strconv.Itoa(os.Getuid()))
	}
	if s.Dir, err = filepath.Abs(s.Dir); err != nil {
		return s, err
	}
	var errs []error
	s.Offset, err = wholeNumber("CLUSTER_PORT_OFFSET", 10000, 0, 50000)
	errs = append(errs, err)
	s.Workers, err = wholeNumber("CLUSTER_WORKERS", 2, 1, 64)
	return s, errors.Join(append(errs, err)...)
}

func wholeNumber(name string, usual, lo, hi int) (int, error) {
	text := os.Getenv(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < lo || n > hi {
		return 0, fmt.Errorf("%s is %q; write a whole number from %d to %d", name, text, lo, hi)
	}
	return n, nil
}
