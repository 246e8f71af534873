package rundir_test

import (
	"fmt"
	"log"

	"github.com/passbook-run/passbook/rundir"
)

// Read a run directory without a server.
func Example() {
	now, err := rundir.At("testdata/reference/feature_done").Now()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(now.State.Task)
	fmt.Println(now.State.Status, "after", now.Tail.Seq, "events")
	fmt.Println("damage:", len(now.Damage))
	// Output:
	// Add input validation
	// done after 34 events
	// damage: 0
}
