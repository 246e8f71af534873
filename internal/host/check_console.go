package host

import (
	"context"
	"net"
	"slices"
	"strings"
)

// consoleName checks that names such as that of the console lead to this machine.
func (e *examiner) consoleName(ctx context.Context) {
	const fix = "Chrome, Edge and Firefox open the console all the same; for another browser, add the name that starter " +
		"console prints to /etc/hosts; programs use 127.0.0.1 with a token"
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	found, err := e.lookup(ctx, "passbook.localhost")
	switch {
	case err != nil || len(found) == 0:
		e.add(Unchecked, "console", "console", fix, "names below localhost do not resolve here")
	case slices.ContainsFunc(found, func(ip string) bool { return !net.ParseIP(ip).IsLoopback() }):
		e.add(Warning, "console", "console", fix, "names below localhost lead to another machine: %s",
			strings.Join(found, ", "))
	default:
		e.ok("console", "console", "names below localhost lead to this machine: browsers open the console by one")
	}
}
