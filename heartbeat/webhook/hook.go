package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"ductor/orchestrator"
)

// Secret is what the caller of a webhook must know. No text and no log shows it.
type Secret string

// String hides it.
func (Secret) String() string { return "[secret]" }

// GoString hides it from %#v.
func (Secret) GoString() string { return "[secret]" }

// LogValue hides it from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// Auth is how the caller of a webhook proves that it knows the secret.
type Auth string

// The ways to prove it.
const (
	// Bearer is "Authorization: Bearer <secret>". A delivery with an Idempotency-Key runs once.
	Bearer Auth = "bearer"
	// GitHub is X-Hub-Signature-256: "sha256=" and the HMAC of the body in hex. The same body runs once.
	// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
	GitHub Auth = "github"
	// Stripe is Stripe-Signature: "t=<unix>,v1=<HMAC of t.body in hex>", and t must be recent. The same event runs
	// once. https://docs.stripe.com/webhooks#verify-manually
	Stripe Auth = "stripe"
)

// Hook is one webhook, POST /hooks/{Name}, and the job it starts.
type Hook struct {
	Name   string
	Auth   Auth
	Secret Secret
	// Job runs for each delivery. Its Prompt is a template: {{payload}} stands for the body, {{payload.a.b}} for a part of
	// a JSON body, each between fences that tell the agent not to obey it. A prompt without either gets the body after it.
	Job       orchestrator.Job
	BodyMax   int64 // bytes; DefaultBodyMax when 0
	PerMinute int   // accepted deliveries a minute; DefaultPerMinute when 0
}

// Defaults and bounds of a Hook.
const (
	DefaultBodyMax   = 256 << 10
	MostBodyMax      = 1 << 20
	DefaultPerMinute = 30
	leastSecret      = 16              // bytes
	tolerance        = 5 * time.Minute // how far the time of a Stripe delivery may be off
)

// hookName limits names to what is plain in URLs and ids.
var hookName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,47}$`) })

// withDefaults sets empty fields to their defaults, and the fields of the job that every hook has.
func (h Hook) withDefaults() Hook {
	h.BodyMax, h.PerMinute = cmp.Or(h.BodyMax, DefaultBodyMax), cmp.Or(h.PerMinute, DefaultPerMinute)
	h.Job.Name, h.Job.Kind, h.Job.Schedule, h.Job.Overlap = h.Name, orchestrator.JobHook, "", orchestrator.OverlapQueue
	return h
}

// check returns what is wrong with a hook with defaults, but for its template.
func (h Hook) check() error {
	switch {
	case !hookName().MatchString(h.Name):
		return fmt.Errorf("a webhook has a name of at most 48 small letters, digits, - and _, not %q", h.Name)
	case h.Auth != Bearer && h.Auth != GitHub && h.Auth != Stripe:
		return fmt.Errorf("webhook %s: auth is \"bearer\", \"github\" or \"stripe\", not %q", h.Name, h.Auth)
	case len(h.Secret) < leastSecret:
		return fmt.Errorf("webhook %s: the secret is shorter than %d characters", h.Name, leastSecret)
	case h.BodyMax < 0 || h.BodyMax > MostBodyMax:
		return fmt.Errorf("webhook %s: bodies are at most %d bytes", h.Name, MostBodyMax)
	case h.PerMinute < 0 || h.PerMinute > 6000:
		return fmt.Errorf("webhook %s: 1 to 6000 deliveries a minute", h.Name)
	}
	return nil
}

// Result says what the store did with a delivery.
type Result string

// The results of a delivery.
const (
	Recorded  Result = "recorded" // its run is recorded
	Repeated  Result = "repeated" // it is a known event with a new signature; nothing is recorded
	Replayed  Result = "replayed" // its signature is known; nothing is recorded
	QueueFull Result = "full"     // orchestrator.MostQueuedRuns runs of the hook wait
	Paused    Result = "paused"   // a user paused the hook's job
)

// Store keeps deliveries. internal/store implements it.
type Store interface {
	// RecordDelivery records the run of a delivery with its signature and its event, all or none. orchestrator.ErrNoJob
	// for an unknown job. Durable when it returns.
	RecordDelivery(ctx context.Context, d Delivery) (Result, error)
	// PruneDeliveries deletes signatures and events from before a time, and returns their number.
	PruneDeliveries(ctx context.Context, before time.Time) (int64, error)
}

// Delivery is one authenticated call of a webhook.
type Delivery struct {
	Signature string // of the exact delivery; empty for a bearer's
	Event     string // the sender's name for the event, or the idempotency key; empty for none
	At        time.Time
	Run       orchestrator.JobRun
}

// RetentionAge is how long the store keeps signatures and events. After that a GitHub body can be replayed.
const RetentionAge = 90 * 24 * time.Hour

var errUnsigned = errors.New("the signature is missing or wrong")
