package work

// Queues are the task queues of one base name and one host.
type Queues struct {
	Shared    string `json:"shared"`     // workflow tasks of runs whose store every host reaches
	Calls     string `json:"calls"`      // passes and screenshots of those runs
	Dir       string `json:"dir"`        // directory work of one host, and workflow tasks of runs that are bound to it
	HostCalls string `json:"host_calls"` // redeliveries to one host, and all calls of runs that are bound to it
}

// QueuesOf names the queues.
func QueuesOf(base, host string) Queues {
	return Queues{Shared: base, Calls: base + "-calls", Dir: base + "-dir-" + host, HostCalls: base + "-calls-" + host}
}
