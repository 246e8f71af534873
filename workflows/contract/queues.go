package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// Queues are the task queues of one host.
type Queues struct {
	Dir       string `json:"dir"`        // directory work, and workflow tasks of host-bound runs
	HostCalls string `json:"host_calls"` // redeliveries to the host, and all calls and screenshots of host-bound runs
}

// HostQueues returns the queues of a host. Host ids and program names never share a queue.
func HostQueues(base, host string) Queues {
	return Queues{Dir: base + "-dir-" + host, HostCalls: base + "-calls-" + host}
}

// StoreQueue returns the queue for workflow tasks of runs on a shared store: only workers that reach the store
// poll it. It is the prefix of their other queues.
func StoreQueue(base, store string) string { return base + "-" + digest(store, 8) }

// CallQueuePrefix returns the prefix of the call queues of runs on a shared store; it is [Input].Calls.
func CallQueuePrefix(storeQueue string) string { return storeQueue + "-calls" }

// BrowserQueue returns the queue for screenshots of runs on a shared store.
func BrowserQueue(calls string) string { return strings.TrimSuffix(calls, "-calls") + "-browser" }

var plain = lazyregexp.New(`^[A-Za-z0-9_.+-]{1,64}$`)

// ProgramQueue returns the queue for calls of an agent's program. Names with other characters, such as paths,
// become last part and digest, so two programs never share a queue.
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
