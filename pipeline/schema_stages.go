package pipeline

import (
	"maps"
	"slices"
)

func schemaOfStage() schema {
	steps := schema{"type": "array", "minItems": 1, "items": ref("step")}
	s := closed(schema{
		"name":         told("The stage's name.", ref("name")),
		"for_each":     told("corpus: the stage is done once for each set, and its steps are called passes.", oneWord("corpus")),
		"orders":       told("By name, how far along a set's files reading begins, wrapping round.", mapOf(ref("order"))),
		"passes":       told("The steps of a stage with for_each, in this order.", steps),
		"steps":        told("The steps of any other stage, in this order.", steps),
		"repeat":       told("The stage is done again and again.", schemaOfRepeat()),
		"checkpoint":   told("Name of the checkpoint after each round, with {set} or {n} where rounds differ.", schema{"type": "string"}),
		"dir":          told("Folder of a round's evidence in _orchestrator, with {set} or {n} where rounds differ.", schema{"type": "string"}),
		"quality_gate": told("A condition like that of repeat.until; a round that does not meet it rests the run, reason quality-gate.", schemaOfUntil()),
		"pause_after":  told("Rest for a review after each set or round; false.", schema{"type": "boolean"}),
	}, "name")
	s["if"] = has("for_each")
	s["then"] = rounds("set", "passes", "steps", "repeat", "quality_gate")
	s["else"] = schema{"if": has("repeat"), "then": rounds("n", "steps", "passes", "orders"), "else": rounds("", "steps", "passes", "orders")}
	s["allOf"] = []schema{unless("orders", eachStep(without("order")))}
	return s
}

// rounds are the rules of a stage whose rounds are told apart by a slot: which key its steps have, and which keys it cannot have.
func rounds(slot, steps string, never ...string) schema {
	s := without(never...)
	keys := s["properties"].(schema)
	keys["checkpoint"], keys["dir"] = slotted(slot, ""), slotted(slot, "/")
	s["required"] = []string{steps}
	return s
}

// slotted is a name, or with "/" a path, that has the slot in it.
func slotted(slot, slash string) schema {
	letter, start := `[A-Za-z0-9._`+slash+`-]`, `[A-Za-z0-9]`
	if slash != "" {
		start = `(?:\./+)*` + start
	}
	if slot == "" {
		return schema{"pattern": `^` + start + letter + `*$`}
	}
	place := `\{` + slot + `\}`
	if slash != "" {
		start = `(?:` + start + `|(?:\./+)*` + place + `)`
	} else {
		start = `(?:` + start + `|` + place + `)`
	}
	return schema{"pattern": `^` + start + `(?:` + letter + `|` + place + `)*$`, "allOf": []schema{{"pattern": place}}}
}

func schemaOfOrder() schema {
	shift := schema{"anyOf": []schema{{"const": 0}, {"type": "string", "pattern": `^(?:0|[0-9]{1,4}/0{0,3}[1-9][0-9]{0,3})$`}}}
	shift["description"] = "0, or a share of the files below one, such as 2/5."
	labelled := closed(schema{
		"shift": shift,
		"label": told("What people call it.", ref("text")),
	}, "shift")
	return schema{"if": schema{"type": "object"}, "then": labelled, "else": shift}
}

func schemaOfRepeat() schema {
	return closed(schema{
		"max":       told("How many rounds at most.", wholeFrom(1, 1000)),
		"until":     told("The rounds end when this holds, such as score >= 3.5, or verdict == done and tests == ok.", schemaOfUntil()),
		"otherwise": told("ask: a person decides when max is reached and until does not hold.", oneWord("ask")),
	}, "max", "until")
}

// schemaOfUntil is the language of ParseUntil; that score is compared with a number, only that says.
func schemaOfUntil() schema {
	name, number := `[A-Za-z][A-Za-z0-9_-]*`, `[+-]?[0-9]{1,15}(?:\.[0-9]{1,30})?`
	value := `(?:"[^"]*"|'[^']*'|[A-Za-z0-9_.+-]+)`
	numeric := `(?:"` + number + `"|'` + number + `'|` + number + `)`
	comparison := name + `\s*(?:[=!]=\s*` + value + `|[<>]=?\s*` + numeric + `)`
	return schema{"type": "string", "pattern": `^\s*` + comparison + `(?:\s*(?:and|or)\s+` + comparison + `)*\s*$`}
}

func schemaOfStep() schema {
	s := closed(schema{
		KindRole: told("Asks one role.", ref("text")),
		KindTogether: told("Asks several roles at the same time; all give reports.",
			schema{"type": "array", "minItems": 2, "uniqueItems": true, "items": ref("text")}),
		KindRun:         told("Runs a shell command.", ref("text")),
		KindScreenshots: told("Takes pictures of the artifact.", schemaOfScreenshots()),
		KindAsk:         told("Asks a person.", schemaOfAsk()),
		"as": told("A name for the step, for see and until.", schema{
			"type": "string", "pattern": untilName.String(), "not": schema{"enum": []string{"last", "score", "verdict", "and", "or"}},
		}),
		"see":        told("Whose reply is in the prompt: last, the name of a stage, or the as of a step.", ref("text")),
		"order":      told("One of the stage's orders.", ref("text")),
		"limits":     told("Laid over those of the role.", ref("limits")),
		"if_failing": told("ask: a person decides when a check of the reply, or the command, fails; continue.", oneWord("continue", "ask")),
	})
	maps.Copy(s, oneKey(kinds()...))
	rules := schema{}
	for _, kind := range kinds() {
		var never []string
		for _, key := range extras() {
			if !slices.Contains(allowed(kind), key) {
				never = append(never, key)
			}
		}
		if never != nil {
			rules[kind] = without(never...)
		}
	}
	s["dependentSchemas"] = rules
	return s
}

func schemaOfScreenshots() schema {
	return closed(schema{
		"sizes": told("Sizes of the window in pixels, such as 1440x900.",
			schema{"type": "array", "minItems": 1, "uniqueItems": true, "items": schema{"type": "string", "pattern": sizeShape.String()}}),
		"kinds": told("full: the whole page; viewport: what the window shows; scroll: each further window on the way down. All three.",
			schema{"type": "array", "minItems": 1, "uniqueItems": true, "items": oneWord("full", "viewport", "scroll")}),
		"attempts":   told("How often it is tried; 3.", wholeFrom(1, 20)),
		"if_failing": told("continue: those who judge get the source instead; stop: the run pauses. continue.", oneWord("continue", "stop")),
		"install":    told("A command that installs a browser.", ref("texts")),
	}, "sizes")
}
