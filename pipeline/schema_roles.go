package pipeline

func schemaOfRole() schema {
	return closed(schema{
		"prompt":  told("Path of its prompt file.", ref("path")),
		"gives":   told("artifact: the whole of it; report: words only; changes: to the workspace.", oneWord(GivesArtifact, GivesReport, GivesChanges)),
		"checks":  told("What is checked of a reply; a failed check is recorded and stops nothing.", schema{"type": "array", "minItems": 1, "items": ref("check")}),
		"notes":   told("The notes that its replies may add to.", schema{"type": "array", "minItems": 1, "uniqueItems": true, "items": ref("text")}),
		"tally":   told("Name: HEADING. The list items under each heading are counted.", mapOf(ref("text"))),
		"score":   told("A number in the reply.", schemaOfScore()),
		"verdict": told("A word in the reply. A reply without one is tried again.", closed(schema{"find": told("A regular expression (RE2) with one group.", ref("find"))}, "find")),
		"agent":   told("Which of agents answers; without it the default one.", ref("text")),
		"limits":  told("Laid over those of the pipeline.", ref("limits")),
		"with":    told("Words of its own for the prompt, placed there by {{with.KEY}}.", mapOf(schemaOfWords())),
	}, "prompt", "gives")
}

// schemaOfWords is a scalar of any kind, or a list of them.
func schemaOfWords() schema {
	scalar := []string{"string", "number", "boolean"}
	return schema{"type": append(scalar, "array"), "minItems": 1, "items": schema{"type": scalar}}
}

func schemaOfScore() schema {
	return closed(schema{
		"name":  told("What the score is called; score.", ref("text")),
		"find":  told("A regular expression (RE2) with one group around the number.", ref("find")),
		"take":  told("The first or the last place that matches; last.", oneWord("last", "first")),
		"range": told("The lowest and the highest allowed; outside it is no score.", ref("pair")),
	}, "find", "range")
}

// schemaOfCheck knows the engine's own checks by name; any other one looks for words.
func schemaOfCheck() schema {
	s := closed(schema{
		"name":    told("non-empty, minimum-length, html-present, html-complete, container-width, or a name of one's own with any or none.", ref("name")),
		"over":    told("minimum-length: more characters than this.", wholeFrom(0, 1e9)),
		"between": told("container-width: the widest max-width, in pixels, from the first number to the second.", ref("pair")),
		"any":     told("One of these words must occur.", ref("texts")),
		"none":    told("None of these words may occur.", ref("texts")),
	}, "name")
	own := schema{"anyOf": []schema{has("any"), has("none")}, "properties": without("over", "between")["properties"]}
	s["allOf"] = []schema{
		named(without("over", "between", "any", "none"), CheckNonEmpty, CheckHTMLPresent, CheckHTMLComplete),
		named(schema{"required": []string{"over"}, "properties": without("between", "any", "none")["properties"]}, CheckMinimumLength),
		named(schema{"required": []string{"between"}, "properties": without("over", "any", "none")["properties"]}, CheckContainerWidth),
		{"if": schema{"properties": schema{"name": oneWord(knownChecks()...)}}, "else": own},
	}
	return s
}

// named lays a rule down for the checks of these names.
func named(rule schema, names ...string) schema {
	return schema{"if": schema{"properties": schema{"name": oneWord(names...)}, "required": []string{"name"}}, "then": rule}
}
