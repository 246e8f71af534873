package work

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// Queues are the task queues of one host: all of its runs that are bound to it, and its own part of the others.
type Queues struct {
	Dir       string `json:"dir"`        // directory work, and workflow tasks of runs that are bound to the host
	HostCalls string `json:"host_calls"` // redeliveries to the host, and all calls and screenshots of runs that are bound to it
}

// QueuesOf names the queues of a host. An id of a host is no name of a program's queue.
func QueuesOf(base, host string) Queues {
	return Queues{Dir: base + "-dir-" + host, HostCalls: base + "-calls-" + host}
}

// StoreQueue is the queue of workflow tasks of runs whose store hosts share: only workers that reach that store poll it. The names of their other
// queues begin with it.
func StoreQueue(base, store string) string { return base + "-" + digest(store, 8) }

// CallsOf is the prefix of the queues of calls of runs on a shared store; it is [workflows.Input].Calls.
func CallsOf(storeQueue string) string { return storeQueue + "-calls" }

// BrowserQueue is where screenshots of runs on a shared store are taken.
func BrowserQueue(calls string) string { return strings.TrimSuffix(calls, "-calls") + "-browser" }

var plain = regexp.MustCompile(`^[A-Za-z0-9_.+-]{1,64}$`)

// ProgramQueue is where calls of an agent's program wait for a worker that has it. A name that is no plain word, such as a path, is named by its
// last part and its digest, so two programs never share a queue.
func ProgramQueue(calls, program string) string {
	if plain.MatchString(program) {
		return calls + "-" + program
	}
	last := strings.Map(func(r rune) rune {
		if plain.MatchString(string(r)) {
			return r
		}
		return '_'
	}, program[strings.LastIndex(program, "/")+1:])
	return calls + "-" + last[:min(len(last), 40)] + "@" + digest(program, 16)
}

func digest(text string, n int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:n]
}
