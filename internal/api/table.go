package api

import "slices"

// The problems that most operations report.
var (
	ofReads    = []Code{CodeInvalid, CodeNotFound, CodeDamaged, CodeFailed}
	ofRequests = append([]Code{CodeNotAllowed, CodeUnavailable}, ofReads...)
	ofResumes  = append([]Code{CodeUndecided}, ofRequests...)
)

// Table is the table of operations. To add one, write its function and add a row. Which statuses allow an operation is
// in package run ([run.Terms.Available]).
func Table() []Operation { return slices.Concat(reads(), starts(), controls(), results()) }

// reads are the operations that change nothing.
func reads() []Operation {
	return []Operation{
		does(Operation{
			Name: "list", Path: "/v1/runs", Access: CanRead, Problems: ofReads,
			Summary: "List runs with status, progress and cost, the newest first",
		}, List),
		does(Operation{
			Name: "inbox", Path: "/v1/questions", Command: "list", Foreign: true, Access: CanRead, Problems: ofReads,
			Summary: "List the open questions of all runs, the oldest first",
		}, Inbox),
		does(Operation{
			Name: "status", Path: "/v1/runs/{id}", Foreign: true, Access: CanRead, Problems: ofReads,
			Summary: "Show the status of a run, its open question and the operations that are available",
		}, Status),
		does(Operation{
			Name: "wait", Command: "watch", Foreign: true, Access: CanRead, Problems: ofReads,
			Summary: "Wait until a run asks, pauses or ends, and show its status",
			Details: "If the run still works after that time, timed_out is true: wait again.",
		}, Wait),
		does(Operation{
			Name: "question", Path: "/v1/runs/{id}/questions", Command: "decide", Foreign: true, Access: CanRead, Problems: ofReads,
			Summary: "Show the open question of a run and what it is about",
		}, Question),
		does(Operation{
			Name: "diagnose", Path: "/v1/runs/{id}/diagnosis", Command: "status", Foreign: true, Access: CanRead, Problems: ofReads,
			Summary: "Explain the state of a run and its cause",
		}, Diagnose),
		does(Operation{
			Name: "diff", Foreign: true, Access: CanRead, Problems: ofReads,
			Summary: "Show the changes of a run as a patch",
		}, Diff),
		does(Operation{
			Name: "passes", Command: "logs", Access: CanRead, Problems: ofReads,
			Summary: "List the completed calls of a run with outcome, verdict and cost",
		}, Passes),
		does(Operation{
			Name: "pass", Path: "/v1/runs/{id}/passes/{pass}", Command: "report", Foreign: true, Access: CanRead,
			Problems: ofReads,
			Summary:  "Show a completed call of a run: prompt, reply, frames and changes",
		}, Pass),
		does(Operation{
			Name: "snapshots", Command: "snapshot", Access: CanRead, Problems: ofReads,
			Summary: "List the trees that the turns of a run left",
		}, Snapshots),
		does(Operation{
			Name: "checkpoints", Access: CanRead, Problems: ofReads,
			Summary: "List the checkpoints of a run, for revert, fork and replay",
		}, Checkpoints),
		does(Operation{
			Name: "evidence", Command: "report", Foreign: true, Access: CanRead, Problems: ofReads,
			Summary: "Return the record of a run as Markdown: task, work, checks, decisions and costs",
		}, Evidence),
	}
}

// starts are the operations that start a run.
func starts() []Operation {
	return []Operation{
		does(Operation{
			Name: "start", Path: "/v1/runs", Command: "run", Access: CanOperate, Repeatable: true, Problems: ofRequests,
			Summary: "Start a run of a pipeline",
			Details: "It returns at once; follow the run with status. If the directory has a run that was given the same, " +
				"that run is returned. Paths are relative to the folder of this program.",
		}, Start),
		does(Operation{
			Name: "fork", Access: CanOperate, Problems: ofRequests,
			Summary: "Start a new run from a checkpoint, with another model, budget or pipeline",
			Details: "The other run does not change.",
		}, Fork),
		does(Operation{
			Name: "replay", Access: CanOperate, Problems: ofRequests,
			Summary: "Repeat the work of a run in a new run, from a checkpoint",
			Details: "Recorded results are used: a call is made only if no answer to the same question is recorded.",
		}, Replay),
	}
}

// controls are the operations on a run that change its course.
func controls() []Operation {
	return []Operation{
		does(Operation{
			Name: "decide", Access: CanDecide, Repeatable: true, Problems: ofResumes,
			Destructive: true,
			Summary:     "Answer the open question of a run",
			Details:     "If two operators decide, the first decision wins. An action may end the run or deliver its work.",
		}, Decide),
		does(Operation{
			Name: "pause", Access: CanOperate, Repeatable: true, Problems: ofRequests,
			Summary: "Pause a run after the running pass",
		}, Pause),
		does(Operation{
			Name: "resume", Access: CanOperate, Repeatable: true, Problems: ofResumes,
			Summary: "Resume a paused, failed, cancelled or interrupted run",
			Details: "Answered calls are not paid for again.",
		}, Resume),
		does(Operation{
			Name: "cancel", Access: CanOperate, Destructive: true, Repeatable: true, Problems: ofRequests,
			Summary: "Cancel a run and end its running call",
			Details: "Completed results stay, and a cancelled run can be resumed.",
		}, Cancel),
		does(Operation{
			Name: "revert", Access: CanOperate, Destructive: true, Problems: ofResumes,
			Summary: "Revert a paused, failed or cancelled run to a checkpoint",
			Details: "It stays the same run. Reverted passes stay in its journal and on disk.",
		}, Revert),
		does(Operation{
			Name: "budget", Access: CanOperate, Repeatable: true, Problems: ofRequests,
			Summary: "Set the budget of a run",
		}, Budget),
		does(Operation{
			Name: "steer", Access: CanOperate, Problems: ofRequests,
			Summary: "Add an instruction to the next prompts of a run",
		}, Steer),
		does(Operation{
			Name: "amend", Access: CanOperate, Repeatable: true, Problems: ofRequests,
			Summary: "Let a run adopt a changed definition",
			Details: "A change of completed steps is refused, and the problem lists the differences.",
		}, Amend),
	}
}

// results are the operations on what a finished run has made.
func results() []Operation {
	return []Operation{
		does(Operation{
			Name: "promote", Access: CanOperate, Destructive: true, Repeatable: true,
			Problems: append([]Code{CodeNotAllowed}, ofReads...),
			Summary:  "Copy the result of a finished run to a path",
			Details:  "Another file there is refused without force. No server is needed.",
		}, Promote),
		does(Operation{
			Name: "verify", Foreign: true, Access: CanOperate, Repeatable: true,
			Problems: append([]Code{CodeNotAllowed}, ofReads...),
			Summary:  "Run the gates of a finished run again",
			Details: "It executes the commands of the run on a copy of its final tree, and may take minutes. The run does " +
				"not change. No server is needed.",
		}, Verify),
	}
}
