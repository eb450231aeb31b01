package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ductor/orchestrator"
)

// claim contains the headers that authenticate a delivery. The handler parses them before it reads the body.
type claim struct {
	macs  [][]byte // signatures; at least one must match the body
	stamp string   // the time t in Stripe's header; Stripe signs it together with the body
	key   string   // the caller's Idempotency-Key
}

// claimOf parses the headers with which a caller authenticates. If it returns an error, the handler rejects the
// delivery without reading the body. For Bearer, claimOf also compares the secret.
func (h Hook) claimOf(header http.Header, now time.Time) (claim, error) {
	switch h.Auth {
	case GitHub:
		return githubClaim(header.Get("X-Hub-Signature-256"))
	case Stripe:
		return stripeClaim(header.Get("Stripe-Signature"), now)
	}
	scheme, token, _ := strings.Cut(header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || !sameSecret(strings.TrimSpace(token), h.Secret.Reveal()) {
		return claim{}, errUnsigned
	}
	key := header.Get("Idempotency-Key")
	if len(key) > 256 {
		return claim{}, errUnsigned
	}
	return claim{key: key}, nil
}

// sameSecret compares two texts in constant time, so that the duration of the comparison reveals neither a common
// prefix nor the length.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func githubClaim(header string) (claim, error) {
	text, ok := strings.CutPrefix(header, "sha256=")
	mac, good := readMAC(text)
	if !ok || !good {
		return claim{}, errUnsigned
	}
	return claim{macs: [][]byte{mac}}, nil
}

// maxStripeMACs is the maximum number of signatures in a header. A sender uses two while it replaces its secret.
const maxStripeMACs = 4

func stripeClaim(header string, now time.Time) (claim, error) {
	if len(header) > 1024 {
		return claim{}, errUnsigned
	}
	var c claim
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			if c.stamp != "" {
				return claim{}, errUnsigned
			}
			c.stamp = value
		case "v1":
			if mac, ok := readMAC(value); ok && len(c.macs) < maxStripeMACs {
				c.macs = append(c.macs, mac)
			}
		}
	}
	seconds, err := strconv.ParseUint(c.stamp, 10, 36)
	age := now.Sub(time.Unix(int64(seconds), 0))
	if err != nil || len(c.macs) == 0 || age > tolerance || -age > tolerance {
		return claim{}, errUnsigned
	}
	return c, nil
}

func readMAC(text string) ([]byte, bool) {
	mac, err := hex.DecodeString(text)
	return mac, err == nil && len(mac) == sha256.Size
}

// verify authenticates the body. It returns the values of Delivery.Signature and Delivery.Event.
func (h Hook) verify(c claim, body []byte) (signature, event string, err error) {
	if h.Auth == Bearer {
		if c.key != "" {
			event = "key " + orchestrator.Digest(c.key)
		}
		return "", event, nil
	}
	mac := hmac.New(sha256.New, []byte(h.Secret))
	if c.stamp != "" {
		mac.Write([]byte(c.stamp + "."))
	}
	mac.Write(body)
	want := mac.Sum(nil)
	matched := 0
	for _, m := range c.macs {
		matched |= subtle.ConstantTimeCompare(m, want)
	}
	if matched == 0 {
		return "", "", errUnsigned
	}
	if h.Auth == Stripe {
		event = stripeEvent(body)
	}
	return "mac " + hex.EncodeToString(want), event, nil
}

// stripeEvent returns the event ID in a body, or "". Event IDs are necessary because Stripe repeats an event with a new
// signature if it gets no answer.
func stripeEvent(body []byte) string {
	var event struct{ ID string }
	if json.Unmarshal(body, &event) != nil || event.ID == "" {
		return ""
	}
	return "event " + strconv.Quote(event.ID[:min(len(event.ID), 256)])
}
