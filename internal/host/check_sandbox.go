package host

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/passbook-run/passbook/internal/sandbox"
)

// sandbox reports what restricts the calls of this host.
func (e *examiner) sandbox(h sandbox.Host) {
	offers := []string{
		"bubblewrap " + cmp.Or(h.Version, "not installed"), "user namespaces " + yes(h.Users),
		fmt.Sprintf("Landlock ABI %d", h.Landlock), "network namespaces " + yes(h.Isolation),
		"pasta " + yes(h.Pasta != ""),
	}
	what := strings.Join(offers, ", ")
	settings := e.Settings.Sandbox
	held, err := sandbox.Decide(sandbox.Request{OfHost: settings.Mode, Offered: settings.Network}, h)
	switch {
	case err != nil:
		e.add(Problem, "sandbox", "sandbox", h.Fix, "no call can start: %v (%s)", err, what)
	case held.Mode == sandbox.None:
		e.ok("sandbox", "sandbox", "calls run without a sandbox, as the settings say: agents may do all that you may (%s)",
			what)
	case !held.Isolated():
		e.ok("sandbox", "sandbox", "calls run in mode %s, and reach the ports of this host, as the settings say (%s)",
			held.Mode, what)
	default:
		e.ok("sandbox", "sandbox", "calls run in mode %s by default (%s)", held, what)
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
