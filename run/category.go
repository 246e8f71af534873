package run

import "slices"

// Category names what an error is, or what else became of a call. The words are those of requirement 002 (§1.5) and
// stay on disk for ever. No other file spells them.
type Category string

// Categories. What is known about each is in its row of Categories.
const (
	CategoryOK               Category = "ok"
	CategoryAgentExit        Category = "claude-p-exit-nonzero"
	CategoryAgentTimeout     Category = "claude-p-timeout"
	CategorySpawnFailed      Category = "claude-p-spawn-failed"
	CategoryRateLimit        Category = "rate-limit"
	CategoryUnreachable      Category = "provider-unreachable"
	CategoryOutputEmpty      Category = "output-empty"
	CategoryOutputTruncated  Category = "output-truncated"
	CategoryNoArtifact       Category = "output-no-artifact"
	CategoryNoModification   Category = "output-no-modification"
	CategoryValidationFailed Category = "validation-failed"
	CategoryScreenshotFailed Category = "screenshot-failed"
	CategoryBudgetExceeded   Category = "budget-exceeded"
	CategoryFileIO           Category = "file-io"
	CategoryStateCorruption  Category = "state-corruption"
	CategoryConfigMismatch   Category = "config-mismatch"
	CategoryUnknown          Category = "unknown"
	CategoryStalled          Category = "stalled"
	CategoryLost             Category = "lost"
	CategoryCancelled        Category = "cancelled"
	CategorySuperseded       Category = "superseded"
)

// Nature is whether a category is an error, and whether another attempt can help.
type Nature string

// Natures.
const (
	NoError   Nature = "no error"
	Transient Nature = "transient" // another attempt may succeed
	Permanent Nature = "permanent" // no further attempt is made, unless the classifier of this error knows better
)

// RetryClass is the key of a role's limits that bounds the attempts after an error.
type RetryClass string

// Retry classes.
const (
	RetryNever      RetryClass = "never"
	RetryAttempts   RetryClass = "attempts"   // limits.attempts, with the waits of limits.backoff
	RetryLimit      RetryClass = "limit"      // the run waits for the provider; no attempt is counted
	RetryStructural RetryClass = "structural" // limits.structural
	RetryDelivery   RetryClass = "delivery"   // the same call goes to the next worker; no attempt is counted
)

// ExitNeedsAttention is the exit code of a verb that waits for a run which pauses for an error.
const ExitNeedsAttention = 3

// CategoryInfo is what is known about a category.
type CategoryInfo struct {
	Name   Category
	Nature Nature
	// Retry is for a call without an answer. After its last attempt the run pauses.
	Retry RetryClass
	// Unusable is for an answer that cannot be used; empty: no answer has this category. After its last attempt the
	// pass settles as failed. The workflow reads it: to change it in a released row needs workflow.GetVersion.
	Unusable RetryClass
	Exit     int    // exit code when a run pauses for it; 0: none does
	Meaning  string // a sentence of at most 15 words
	Advice   string // what the operator does next: an imperative without a full stop
}

// Categories returns the table: one row for each category.
func Categories() []CategoryInfo { return slices.Clone(categories) }

var categories = []CategoryInfo{
	{
		Name: CategoryOK, Nature: NoError, Retry: RetryNever,
		Meaning: "The call is answered and its answer is used.",
		Advice:  "Nothing to do",
	}, {
		Name: CategoryAgentExit, Nature: Transient, Retry: RetryAttempts, Exit: ExitNeedsAttention,
		Meaning: "The agent ended with an error.",
		Advice:  "Fix what the agent reports",
	}, {
		Name: CategoryAgentTimeout, Nature: Transient, Retry: RetryAttempts, Exit: ExitNeedsAttention,
		Meaning: "The agent did not end in time, or printed nothing for too long.",
		Advice:  "Find out what the agent waits for, or raise its timeout",
	}, {
		Name: CategorySpawnFailed, Nature: Permanent, Retry: RetryAttempts, Exit: ExitNeedsAttention,
		Meaning: "The agent could not be started.",
		Advice:  "Install the agent's program or correct its command",
	}, {
		Name: CategoryRateLimit, Nature: Transient, Retry: RetryLimit, Exit: ExitNeedsAttention,
		Meaning: "The provider refuses calls for a time: usage limit, rate limit or overload.",
		Advice:  "Wait until the provider accepts calls again",
	}, {
		Name: CategoryUnreachable, Nature: Transient, Retry: RetryLimit, Exit: ExitNeedsAttention,
		Meaning: "The connection to the provider failed or broke off.",
		Advice:  "Check the network of the host",
	}, {
		Name: CategoryOutputEmpty, Nature: Transient, Retry: RetryAttempts,
		Unusable: RetryStructural, Exit: ExitNeedsAttention,
		Meaning: "The agent answered nothing, or its output cannot be read.",
		Advice:  "Run the agent's command by hand and check what it prints",
	}, {
		Name: CategoryOutputTruncated, Nature: Transient, Retry: RetryAttempts,
		Unusable: RetryAttempts, Exit: ExitNeedsAttention,
		Meaning: "The answer breaks off, or exceeds `limits.output`.",
		Advice:  "Ask for a shorter answer",
	}, {
		Name: CategoryNoArtifact, Nature: Transient, Retry: RetryAttempts,
		Unusable: RetryStructural, Exit: ExitNeedsAttention,
		Meaning: "The answer has no artifact, or one that cannot be used.",
		Advice:  "Check that the role's prompt asks for the whole artifact",
	}, {
		Name: CategoryNoModification, Nature: NoError, Retry: RetryNever,
		Meaning: "The artifact is unchanged: a line of `quality.jsonl`, not an error.",
		Advice:  "Nothing to do",
	}, {
		Name: CategoryValidationFailed, Nature: Transient, Retry: RetryAttempts,
		Unusable: RetryStructural, Exit: ExitNeedsAttention,
		Meaning: "The answer lacks the sections or the verdict that its role requires.",
		Advice:  "Compare the role's prompt with its checks",
	}, {
		Name: CategoryStalled, Nature: Permanent, Retry: RetryNever, Exit: ExitNeedsAttention,
		Meaning: "The agent made the same call again and again, also after a warning.",
		Advice:  "Check what it repeats, and change the prompt or the environment",
	}, {
		Name: CategoryScreenshotFailed, Nature: Transient, Retry: RetryAttempts, Exit: ExitNeedsAttention,
		Meaning: "An attempt took no screenshots, or a browser had to be installed.",
		Advice:  "Check the browser with starter doctor",
	}, {
		Name: CategoryBudgetExceeded, Nature: Permanent, Retry: RetryNever, Exit: ExitNeedsAttention,
		Meaning: "The budget is spent, or too small for the next call.",
		Advice:  "Raise the budget",
	}, {
		Name: CategoryFileIO, Nature: Transient, Retry: RetryAttempts, Exit: ExitNeedsAttention,
		Meaning: "The disk is full, or a file or working directory cannot be stored.",
		Advice:  "Free space on the disk, or fix the file in the message",
	}, {
		Name: CategoryStateCorruption, Nature: Transient, Retry: RetryNever,
		Meaning: "A file of the run directory was damaged; derived files are rebuilt.",
		Advice:  "Check the directory with starter check and repair what it reports",
	}, {
		Name: CategoryConfigMismatch, Nature: Permanent, Retry: RetryNever, Exit: ExitNeedsAttention,
		Meaning: "The definition differs from the directory's earlier run, or names an unknown reply kind.",
		Advice:  "Correct the definition",
	}, {
		Name: CategoryUnknown, Nature: Transient, Retry: RetryAttempts, Exit: ExitNeedsAttention,
		Meaning: "The run failed, a call was lost too often, or nothing else fits.",
		Advice:  "Read the message and fix its cause",
	}, {
		Name: CategoryLost, Nature: NoError, Retry: RetryDelivery,
		Meaning: "The worker of the call was lost; the next worker gets the same call.",
		Advice:  "Start a worker if none is running",
	}, {
		Name: CategoryCancelled, Nature: NoError, Retry: RetryNever,
		Meaning: "An operator ended the call.",
		Advice:  "Resume the run when you are ready",
	}, {
		Name: CategorySuperseded, Nature: NoError, Retry: RetryNever,
		Meaning: "A delivery of a call that is not its answer; its cost is counted.",
		Advice:  "Nothing to do",
	},
}

// Info returns the row of the category. A word that is not in the table, written by another release, has the row of
// CategoryUnknown under its own name.
func (c Category) Info() CategoryInfo {
	row := func(name Category) int {
		return slices.IndexFunc(categories, func(i CategoryInfo) bool { return i.Name == name })
	}
	if at := row(c.canonical()); at >= 0 {
		found := categories[at]
		found.Name = c
		return found
	}
	other := categories[row(CategoryUnknown)]
	other.Name = c
	return other
}

// IsError reports whether the category is an error.
func (c Category) IsError() bool { return c.Info().Nature != NoError }

// StoppedBy returns the category of the error that an operator has to clear before a paused run resumes; empty: none.
func (s State) StoppedBy() Category {
	if s.Status != Paused {
		return ""
	}
	switch {
	case s.Reason == BudgetThreshold && s.Raised:
		return ""
	case s.Reason == BudgetThreshold:
		return CategoryBudgetExceeded
	case s.Reason == DiskFull:
		return CategoryFileIO
	case s.Reason != PassFailed && s.Reason != ConsecutiveFailures && s.Reason != GateFailed:
		return ""
	case s.Failure != nil:
		return s.Failure.Category
	case s.Problem != nil:
		return s.Problem.Category
	}
	return ""
}
