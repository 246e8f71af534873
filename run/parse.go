package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ParseEvent reads one line. Only something that is not a JSON object is an error, and a name that leads out of a run
// directory ([NameError]); fields of a wrong type stay empty.
func ParseEvent(line []byte) (Event, error) {
	e, err := parse(line)
	if err == nil {
		err = e.checkNames()
	}
	return e, err
}

// ParseLine is ParseEvent for a line that is a string.
func ParseLine(line string) (Event, error) { return ParseEvent([]byte(line)) }

func parse(line []byte) (e Event, err error) {
	if object := bytes.TrimLeft(line, " \t\r\n"); !bytes.HasPrefix(object, []byte("{")) {
		return e, fmt.Errorf("not a JSON object: %.20q", object)
	}
	if err := json.Unmarshal(line, &e); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
		return Event{}, fmt.Errorf("not a JSON object: %w", err)
	}
	return e, nil
}
