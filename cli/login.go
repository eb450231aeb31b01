package cli

import "context"

// DeviceCode is what a user needs to log an agent in from another device: the code is entered on a page.
type DeviceCode struct {
	Agent Agent
	URL   string
	Code  string
}

// DeviceLogin is a Provider whose agent can be logged in from another device.
type DeviceLogin interface {
	// LogIn has the agent log in. show gets where the user enters which code. LogIn returns once the agent is logged in; the
	// error says why it is not. The end of ctx gives up.
	LogIn(ctx context.Context, show func(DeviceCode)) error
}
