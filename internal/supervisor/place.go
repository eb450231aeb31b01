package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Place is where runs live that do not live on this machine, such as a container. Safe for concurrent use.
type Place interface {
	// Dial starts a process there that calls Main with the argument "bridge", and gives its standard input and
	// output as one connection. Closing that ends the proxy, and nothing that was started over it. ctx bounds
	// the start. An error matching ErrNoPlace says that nothing of the place is there and so no run can be alive;
	// with Make it may have any reason, and its words are for people.
	Dial(ctx context.Context, effort Effort) (net.Conn, error)
}

// Effort is what Place.Dial may do to be successful.
type Effort int

// The efforts, from the least to the greatest.
const (
	AsIs   Effort = iota // nothing: what is not up is not there
	Revive               // what is there and does not run is started again
	Make                 // what is not there is made
)

// ErrNoPlace says that a place is not there, and with it nothing that ran in it.
var ErrNoPlace = errors.New("the place is not there")

// LostPlaceError says that the connection to a run's place is lost, for good or for longer than a reader waits. What
// runs there may run on, until it finds itself orphaned.
type LostPlaceError struct {
	Err error // why the place cannot be reached
}

func (e *LostPlaceError) Error() string {
	return fmt.Sprintf("the run cannot be reached any more: %v", e.Err)
}
func (e *LostPlaceError) Unwrap() error { return e.Err }

// runEnv is what a Root needs of where its runs live: this machine (localEnv) or a Place (remoteEnv). Errors of join
// match ErrGone when there is no supervisor any more and the disk is here to be read.
type runEnv interface {
	start(ctx context.Context, h hello) (*link, welcome, error)
	join(ctx context.Context, effort Effort, id string, h hello) (*link, welcome, error)
	list(ctx context.Context) ([]Info, error)
	kill(ctx context.Context, id string) error
	collect(ctx context.Context, id string) error
	// endLeft ends what is left of a run whose supervisor is gone, or cannot be talked to.
	endLeft(ctx context.Context, id string, grace time.Duration) error
	prune(ctx context.Context, age time.Duration) (int, error)
	lookPath(ctx context.Context, name string) (string, error)
	tidy()
	close()
}
