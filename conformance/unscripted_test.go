package conformance

// unscripted says of a row about failures why no script tells it.
var unscripted = map[string]string{}
