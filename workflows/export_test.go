package workflows

// Details is open to tests.
var Details = details
