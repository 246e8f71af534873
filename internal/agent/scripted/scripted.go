// Package scripted is Passbook's own offline agent: it answers the prompts of the corpus pipeline without a model,
// and as a worker it edits the files of its working directory as the plan there describes.
//
// It has no state, clock or randomness: the same prompt always returns
// the same bytes, so runs can be compared. It exists for the demo, for tests, and for trying out failures (Fault).
package scripted

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// Names of the environment variables that it reads.
const (
	FaultsEnv  = "PASSBOOK_FAULTS"   // a file of faults; attempts are counted in <file>.attempts
	CallLogEnv = "PASSBOOK_CALL_LOG" // a file that gets a line when a call starts and one when it is answered
)

// EnvNames returns all of them, to start the agent with a limited environment.
func EnvNames() []string { return []string{FaultsEnv, CallLogEnv} }

// Exit codes.
const (
	exitOK      = 0
	exitFailed  = 1
	exitMisused = 2 // the fault file is wrong
)

// actor is one call under way.
type actor struct {
	stdout, stderr io.Writer
	log            callLog
	call           call
	prompt         string
}

// Verb is the hidden verb of the programs that runs the scripted agent.
const Verb = "scripted-agent"

// Main reads a prompt from stdin and writes an answer in claude's JSON envelope to stdout. It returns the exit code.
func Main(stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	prompt, err := io.ReadAll(stdin)
	if err != nil {
		fmt.Fprintf(stderr, "scripted agent: read the prompt: %v\n", err)
		return exitFailed
	}
	a := actor{stdout: stdout, stderr: stderr, prompt: string(prompt), call: parse(string(prompt))}
	a.log = callLog{file: getenv(CallLogEnv), at: a.call.at()}
	fault, err := faultFor(getenv(FaultsEnv), a.call.at())
	if err != nil {
		fmt.Fprintf(stderr, "scripted agent: %v\n", err)
		return exitMisused
	}
	if err := a.log.started(a.prompt); err != nil {
		return a.fail(err)
	}
	if fault != nil {
		return a.suffer(*fault)
	}
	return a.answer(request{})
}

// answer composes the reply and prints it in an envelope.
func (a *actor) answer(r request) int {
	text, err := a.call.reply(r)
	if err != nil {
		return a.fail(err)
	}
	return a.print(newEnvelope(a.prompt, text))
}

// print writes the envelope. The call is logged as answered when only its last byte is missing: a process killed
// before that has not answered.
func (a *actor) print(e envelope) int {
	data, err := e.bytes()
	if err != nil {
		return a.fail(err)
	}
	if _, err := a.stdout.Write(data[:len(data)-1]); err != nil {
		return a.fail(err)
	}
	if err := a.log.answered(a.prompt, e.Result); err != nil {
		return a.fail(err)
	}
	if _, err := a.stdout.Write(data[len(data)-1:]); err != nil {
		return a.fail(err)
	}
	return exitOK
}

func (a *actor) fail(err error) int {
	fmt.Fprintf(a.stderr, "scripted agent: %v\n", err)
	return exitFailed
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
