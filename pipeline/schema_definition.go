package pipeline

import "maps"

func schemaOfDefinition() schema {
	s := closed(schema{
		"pipeline":  told("The pipeline's name: letters, digits, dots, dashes, underscores.", ref("name")),
		"kind":      told("planning or research: the result is a plan or a report, and a person who reviews it ends the run.", oneWord(KindPlanning, KindResearch)),
		"questions": told("How long a run waits for a person.", schemaOfQuestions()),
		"notify":    told("Who is told when a run waits, rests, fails or is over.", schema{"type": "array", "minItems": 1, "items": schemaOfNotify()}),
		"delivery":  told("Where the changes of a git workspace go when the run is through.", schemaOfDelivery()),
		"agent":     told("Who answers when a role names no other agent.", ref("agent")),
		"agents":    told("More agents, by name; a role names its own.", mapOf(ref("agent"))),
		"limits":    told("How long and how often a pass is tried.", limitsWithScale()),
		"budget":    told("What a run may spend; it pauses when the money is gone.", schemaOfBudget()),
		"artifact":  told("The one file that the passes revise.", schemaOfArtifact()),
		"workspace": told("The tree that agents change in place, instead of an artifact.", schemaOfWorkspace()),
		"snapshots": told("What each turn leaves of the workspace in snapshots/: manifests, which the store brings back; or full, the files too. manifests.",
			oneWord("manifests", "full")),
		"notes":       told("Append-only files, by name, filled from marked blocks of the replies.", mapOf(schemaOfNote())),
		"always_read": told("Files that every prompt with references has, each as Label: path.", ref("files")),
		"roles":       told("The kinds of questions, by name.", mapOf(ref("role"))),
		"corpus":      told("The sets of files, by name, in the order in which a stage with for_each walks them.", mapOf(schemaOfSet())),
		"stages":      told("What is done, in this order.", schema{"type": "array", "minItems": 1, "items": ref("stage")}),
	}, "pipeline", "roles", "stages")
	s["description"] = "A pipeline of agent calls: roles, files and stages. docs/pipelines.md explains every key."
	s["anyOf"] = []schema{has("agent"), has("agents")}
	s["not"] = schema{"required": []string{"artifact", "workspace"}}
	s["allOf"] = []schema{
		unless("agent", eachRole(has("agent"))),
		unless("artifact", eachRole(schema{"properties": schema{"gives": schema{"not": schema{"const": GivesArtifact}}}})),
		unless("workspace", eachRole(schema{"properties": schema{"gives": schema{"not": schema{"const": GivesChanges}}}})),
		unless("corpus", eachStage(without("for_each"))),
		unless("workspace", without("delivery")),
		unless("workspace", without("snapshots")),
		unless("artifact", eachStage(eachStep(without(KindScreenshots)))),
	}
	return s
}

func eachRole(rule schema) schema {
	return schema{"properties": schema{"roles": schema{"additionalProperties": rule}}}
}

func eachStage(rule schema) schema {
	return schema{"properties": schema{"stages": schema{"items": rule}}}
}

func eachStep(rule schema) schema {
	return schema{"properties": schema{"steps": schema{"items": rule}, "passes": schema{"items": rule}}}
}

func schemaOfAgent() schema {
	price := closed(schema{
		"input":  told("USD per million tokens of the prompt.", numberFrom(0, 1e6)),
		"output": told("USD per million tokens of the reply.", numberFrom(0, 1e6)),
	}, "input", "output")
	s := closed(schema{
		"run": told("The command and its arguments; it gets the prompt on standard input. [scripted] is the agent that is built in.", ref("texts")),
		"reply": told("How its output is read: claude-json, one object with text, tokens and cost; or text, what it prints is the reply.",
			oneWord("claude-json", "text")),
		"price": told("Used only for replies that carry no cost.", price),
		"env": told("Names of environment variables that it may see beside the usual ones.",
			schema{"type": "array", "minItems": 1, "items": schema{"type": "string", "pattern": envName.String()}}),
	}, "run")
	s["if"] = schema{"properties": schema{"run": schema{"prefixItems": []schema{{"const": Scripted}}}}}
	s["else"] = has("reply")
	return s
}

func schemaOfLimits() schema {
	backoff := closed(schema{
		"first":  told("The wait after the first failed attempt; 5s.", ref("wait")),
		"factor": told("Each wait is this much longer than the one before; 2.", numberFrom(1, 100)),
		"max":    told("The longest wait; 2m.", ref("wait")),
		"jitter": told("Share of a wait that chance may add; 0.2.", numberFrom(0, 1)),
	})
	rateLimit := closed(schema{
		"attempts": told("Attempts when the provider is overloaded; 5.", wholeFrom(1, 20)),
		"first":    told("The first wait then; 1m.", ref("wait")),
		"max":      told("The longest wait then; 5m.", ref("wait")),
	})
	return closed(schema{
		"timeout":    told("Of one attempt; from the third attempt on half as much again. 10m.", ref("wait")),
		"attempts":   told("How often a pass is tried; 3.", wholeFrom(1, 20)),
		"structural": told("Attempts when a reply is no answer: no artifact, or no sections. 2.", wholeFrom(1, 20)),
		"backoff":    told("How long is waited between attempts.", backoff),
		"rate_limit": told("Attempts and waits when the provider says that it is overloaded.", rateLimit),
	})
}

// limitsWithScale are the limits of the whole pipeline, with the one key that only they have.
func limitsWithScale() schema {
	s := schemaOfLimits()
	keys := maps.Clone(s["properties"].(schema))
	keys["time_scale"] = told("Real waits are this much of what the log says; for demos. 1.", numberFrom(0.000001, 1000))
	s["properties"] = keys
	return s
}

func schemaOfBudget() schema {
	return closed(schema{
		"usd":     told("What a run may spend, in USD.", numberFrom(0, 1e9)),
		"warn_at": told("It warns at this share of usd; 0.8.", numberFrom(0.01, 1)),
	}, "usd")
}

func schemaOfArtifact() schema {
	return closed(schema{
		"file": told("Its name in the run directory.", ref("file")),
		"seed": told("The file beside this one that it starts from.", ref("path")),
	}, "file", "seed")
}

func schemaOfWorkspace() schema {
	s := closed(schema{
		"git": told("worktree: each run works in a checkout of its own.", oneWord("worktree")),
		"dir": told("A folder beside this file; each run works on a copy of its own.", ref("path")),
		"dirty": told("What to do with changes in the source that are not committed: halt, include them, exclude them, or commit them there; halt.",
			oneWord("halt", "include", "exclude", "commit")),
		"ignore":  told("Patterns as in .gitignore, of what is not part of the tree.", ref("texts")),
		"secrets": told("Files that look like secrets (.env, keys) are left out: skip; or kept: keep. skip.", oneWord("skip", "keep")),
	})
	maps.Copy(s, oneKey("git", "dir"))
	s["dependentSchemas"] = schema{"dir": without("dirty")}
	return s
}

// patience are the keys that say how long a question waits.
func patience() schema {
	return schema{
		"remind":    told("A reminder after each such time.", ref("wait")),
		"expires":   told("Nobody waits longer than this.", ref("wait")),
		"on_expiry": told("What happens then: halt, continue, or remind and go on waiting; halt.", oneWord("halt", "continue", "remind")),
	}
}

func schemaOfQuestions() schema { return closed(patience()) }

func schemaOfAsk() schema {
	keys := patience()
	keys["question"] = told("What a person is asked.", ref("text"))
	keys["type"] = told("human_feedback_always; human_feedback_on_reject: only when the last verdict was not approved; human_bypass: likewise, and nothing is done again.",
		oneWord(AskAlways, AskOnReject, AskBypass))
	return schema{"if": schema{"type": "object"}, "then": closed(keys, "question"), "else": ref("text")}
}

func schemaOfNotify() schema {
	name := schema{"type": "string", "pattern": envName.String()}
	s := closed(schema{
		"run":         told("A command and its arguments; it gets the message as JSON on standard input.", ref("texts")),
		"env":         told("Names of environment variables that the command may see beside the usual ones.", schema{"type": "array", "minItems": 1, "items": name}),
		"webhook":     told("An address that the message is posted to, as JSON.", schema{"type": "string", "pattern": "^https?://[^/]"}),
		"webhook_env": told("The name of the environment variable that has the address, where it is a secret.", name),
		"secret_env":  told("The name of the environment variable with the key that the message is signed with (HMAC with SHA-256).", name),
		"on":          told("What it is told of; all of these.", schema{"type": "array", "minItems": 1, "items": oneWord(Occasions()...)}),
		"timeout":     told("Of one try; 30s.", ref("wait")),
		"give_up":     told("No try is made after this long; 24h.", ref("wait")),
	})
	maps.Copy(s, oneKey("run", "webhook", "webhook_env"))
	s["dependentSchemas"] = schema{"env": has("run"), "secret_env": without("run")}
	return s
}

func schemaOfDelivery() schema {
	return closed(schema{
		"to":      told("branch: one commit on a branch; checkout: applied to the source's checkout.", oneWord("branch", "checkout")),
		"branch":  told("The branch that gets the commit.", ref("text")),
		"commit":  told("A delivery to the checkout is committed there; true.", schema{"type": "boolean"}),
		"paths":   told("Only changes below these are delivered.", ref("texts")),
		"message": told("Of the commit.", ref("text")),
	}, "to")
}

func schemaOfNote() schema {
	return closed(schema{
		"file":   told("Its name in the run directory.", ref("file")),
		"marker": told("X takes what a reply says between <!-- X_START --> and <!-- X_END -->.", schema{"type": "string", "pattern": marker.String()}),
	}, "file", "marker")
}

func schemaOfSet() schema {
	return closed(schema{
		"theme": told("What the set is about.", ref("label")),
		"files": told("Its files in their order, each as Label: path.", ref("files")),
	}, "theme", "files")
}
