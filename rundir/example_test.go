package rundir_test

import (
	"fmt"
	"log"

	"github.com/passbook-run/passbook/rundir"
)

// Read a run directory without a server.
func Example() {
	now, err := rundir.At("testdata/run").Now()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(now.State.Task)
	fmt.Println(now.State.Status, "after", now.Tail.Seq, "events")
	fmt.Println("damage:", len(now.Damage))
	// Output:
	// page
	// done after 54 events
	// damage: 0
}
