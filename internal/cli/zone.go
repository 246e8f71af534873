package cli

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/passbook-run/passbook/run"
)

// zone returns the time zone of this machine by its name, such as Europe/Berlin.
var zone = sync.OnceValue(func() *time.Location {
	if name, set := os.LookupEnv("TZ"); set {
		return located(strings.TrimPrefix(name, ":"))
	}
	target, err := filepath.EvalSymlinks("/etc/localtime")
	if err != nil {
		return time.UTC
	}
	_, name, _ := strings.Cut(filepath.ToSlash(target), "/zoneinfo/")
	return located(name)
})

// located loads a time zone. One without a name is shown by its abbreviation.
func located(name string) *time.Location {
	if name == "" || name == "Etc/UTC" || name == "UCT" {
		name = "UTC"
	}
	if at, err := time.LoadLocation(name); err == nil {
		return at
	}
	return time.Local
}

// clock is when and where this command shows times.
func clock(now time.Time) run.Clock { return run.Clock{Now: now, Zone: zone()} }
