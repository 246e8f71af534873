package run_test

import (
	"fmt"
	"log"
	"os"

	"github.com/passbook-run/passbook/run"
)

// Fold the events of a run directory into the state of the run.
func ExampleReader() {
	journal, err := os.Open("../rundir/testdata/run/events.jsonl")
	if err != nil {
		log.Fatal(err)
	}
	defer journal.Close()

	fold := run.NewFold(run.State{}, run.History{})
	damaged := 0
	for line, err := range run.NewReader(journal, 0).Lines() {
		switch {
		case err != nil:
			log.Fatal(err)
		case line.Err != nil:
			damaged++
		default:
			fold.Apply(line.Event)
		}
	}
	state := fold.State()
	fmt.Println(state.Task)
	fmt.Println(state.Status, "after", state.Seq, "events")
	fmt.Println("damaged lines:", damaged)
	// Output:
	// page
	// done after 54 events
	// damaged lines: 0
}
