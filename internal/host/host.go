// Package host answers for one machine: where is the Temporal server, who works, and is it healthy.
//
// It connects to the server that TEMPORAL_* or a profile names, or runs an embedded one; it polls the queues of this
// host; it starts and stops the background server, worker and keeper of a state directory; and it checks what runs
// need. Background processes outlive the terminal that started them, and all starters share them. The package promises
// that two concurrent starters start one of each; that a record whose process has ended is replaced; that only the
// recorded process gets a signal; that a server keeps its address and its database; that a worker that stops leaves
// its calls to the next one; and that counters come from the events that a worker writes to run directories.
//
//	<state>/format.json           the version of the directory, see package format
//	<state>/host-id               the name of this machine in queue names, random and stable
//	<state>/attached              a lock shared by attached starters
//	<state>/processes.json        server, worker and keeper that should run; the next server reuses the ports
//	<state>/lock                  held while a process starts or stops others
//	<state>/server/server.log     its output over all starts
//	<state>/server/certs/         keys and certificates of server and clients, see package certs
//	<state>/server/ui/            the login of the Web UI: links that can be opened
//	<state>/server/temporal-1.32.db   its database, one for each minor version, never migrated
//	<state>/worker/ready-PID.json a polling worker, written by that worker
package host

import (
	"log/slog"
	"time"
)

// Names in the state directory.
const (
	serverDir   = "server"
	workerDir   = "worker"
	recordFile  = "processes.json"
	serverLog   = "server.log"
	workerLog   = "worker.log"
	readyPrefix = "ready-" // and the pid
	lockFile    = "lock"
	leaseFile   = "attached"
	keeperDir   = "keeper"
	keeperLog   = "keeper.log"
	hostFile    = "host-id"
	certsDir    = "certs"
	loginDir    = "ui"
)

const (
	defaultStartTimeout = time.Minute
	pollInterval        = 25 * time.Millisecond
	checkTimeout        = 2 * time.Second
	certsEvery          = time.Minute // renewals are due weeks before the end
)

var discard = slog.New(slog.DiscardHandler)
