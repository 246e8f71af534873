package workerhost_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/passbook-run/passbook/workerhost"
)

// A program that hosts a worker until it gets SIGINT or SIGTERM. This one stops as soon as it polls.
func Example() {
	if code, ok := workerhost.RunChild(os.Args[1:]); ok { // first in main
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := workerhost.Run(ctx, workerhost.Options{
		Ready: func() error {
			fmt.Println("polling")
			stop()
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("stopped")
	// Output:
	// polling
	// stopped
}
