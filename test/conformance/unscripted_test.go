package conformance

// unscripted says of a row about failures why no script tells it: it needs more than the starter, files and faults of
// the scripted agent, and a test in Go shows it.
var unscripted = map[string]string{
	"ER-01": "it is about the records of all runs", "ER-02": "it is about the records of all runs",
	"ER-03": "it counts the characters of a long complaint", "ER-04": "it is about the records of all runs",

	"RX-01": "it is about every attempt of all runs",
	"RX-02": "it needs an agent that fails six times and is not limited",
	"RX-03": "it is about numbers at random", "RX-10": "it needs an agent that breaks off in particular words",
	"RX-14": "the scripted agent leaves a page as it is in the long example only",
	"RX-17": "it needs a browser that dies when it is told to",
	"RX-18": "it needs a browser that dies when it is told to",
	"RX-21": "it counts cents while three auditors are out",

	"LC-01": "it compares the times of files", "LC-02": "it looks at the directory while nobody works",
	"LC-03": "it stops at every write",
	"LC-04": "it needs a terminal", "LC-05": "it needs a terminal", "LC-06": "it needs a terminal",
	"LC-07": "it needs a terminal",
	"LC-08": "it needs a terminal", "LC-09": "it needs a terminal", "LC-10": "it needs a terminal",
	"LC-11": "it needs a terminal",

	"IV-01": "it watches a whole run", "IV-02": "it watches a whole run", "IV-03": "it watches a whole run",
	"IV-04": "it watches a whole run",
	"IV-05": "it is about a run without failures", "IV-06": "it is about a run without failures",
	"IV-07": "it is about the sums of all runs",
	"IV-09": "it is about two rows of their own", "IV-10": "it needs an agent that keeps what it said",

	"RS-06": "it writes to the directory while nobody works", "RS-07": "it writes to the directory while nobody works",
	"RS-08": "it takes away the server and the store", "RS-09": "it takes away the server and the store",
	"RS-11": "it is about a run without failures",
	"RS-14": "it needs a worker that dies in a cycle",
	"RS-19": "it kills everywhere",
	"RS-20": "it is about logs that grow", "RS-21": "it kills everywhere", "RS-22": "it compares notes of two runs",
}
