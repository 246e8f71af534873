package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"

	"github.com/passbook-run/passbook/client"
	"github.com/passbook-run/passbook/run"
)

// Start a run, answer its question, and wait for its end.
func Example() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	started, err := c.Start(ctx, client.StartOptions{Definition: "testdata/greet/pipeline.yaml"})
	if err != nil {
		log.Fatal(err)
	}
	asks := func(s client.Status) bool { return s.Question != nil }
	status, err := c.Wait(ctx, started.RunID, asks)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Question.Text)

	decision := client.Decision{Action: run.ActionContinue, Question: status.Question.ID}
	if _, err := c.Decide(ctx, started.RunID, decision); err != nil {
		log.Fatal(err)
	}
	status, err = c.Wait(ctx, started.RunID, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Status)
	page, err := os.ReadFile(filepath.Join(started.Directory, "page.html"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(page))
	// Output:
	// Publish the page?
	// done
	// <!DOCTYPE html>
	// <html><body><h1>Hello, reader</h1></body></html>
}

// Cancel a run, and continue it after an operation that its status does not allow.
func ExampleClient_Resume() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Options{User: "ada"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	started, err := c.Start(ctx, client.StartOptions{
		Definition: "pipeline.yaml", Folder: os.DirFS("testdata/greet"),
		Dir: filepath.Join(os.TempDir(), "cancelled"), Task: "Greet the reader.",
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := c.Cancel(ctx, started.Directory); err != nil {
		log.Fatal(err)
	}
	closed := func(s client.Status) bool { return s.EffectiveStatus.Liveness == run.LiveClosed }
	if _, err := c.Wait(ctx, started.Directory, closed); err != nil {
		log.Fatal(err)
	}

	err = c.Pause(ctx, started.Directory, client.PauseOptions{Note: "wait for the review"})
	var conflict *run.ConflictError
	if errors.As(err, &conflict) {
		fmt.Println(conflict.Operation, "refused: the run is", conflict.From)
		fmt.Println("may resume:", slices.Contains(conflict.Allowed, run.Resume))
	}
	resumed, err := c.Resume(ctx, started.Directory, client.ResumeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("continues in epoch", resumed.Epoch)
	// Output:
	// pause refused: the run is cancelled
	// may resume: true
	// continues in epoch 2
}

// List the runs of one pipeline.
func ExampleClient_List() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	runs, err := c.List(ctx, client.Filter{Pipeline: "no-such-pipeline"})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range runs {
		fmt.Println(r.ID, r.Status, r.CostUSD)
	}
	fmt.Println(len(runs), "runs")

	_, err = c.Status(ctx, "no-such-run")
	var unknown *client.NameError
	fmt.Println(errors.As(err, &unknown), unknown.Name)
	// Output:
	// 0 runs
	// true no-such-run
}
