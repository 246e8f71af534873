package doctor

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
	}
	what := strings.Join(offers, ", ")
	switch mode := e.Settings.Sandbox.Mode; {
	case h.Problem == "" && !h.Isolation:
		e.add(Warning, "sandbox", "sandbox", "", "calls can run in a sandbox, but without network: none or addresses: %s",
			what)
	case h.Problem == "":
		e.ok("sandbox", "sandbox", "calls run in mode %s by default: %s; with network open, they reach the ports of "+
			"this host", cmp.Or(mode, sandbox.Workspace), what)
	case mode == sandbox.None:
		e.add(Unchecked, "sandbox", "sandbox", h.Fix, "calls run without a sandbox, as the settings say: %s (%s)",
			h.Problem, what)
	case mode != "":
		e.add(Problem, "sandbox", "sandbox", h.Fix, "the settings ask for sandbox.mode %s: %s (%s)", mode, h.Problem, what)
	default:
		e.add(Warning, "sandbox", "sandbox", h.Fix, "calls run without a sandbox: %s (%s)", h.Problem, what)
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
