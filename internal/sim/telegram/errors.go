package telegram

import (
	"fmt"
	"net/http"
)

// Error is an error response of the Bot API.
type Error struct {
	Code        int    // HTTP status, which the body repeats as error_code
	Description string // exact text of the real server, because clients compare it
	RetryAfter  int    // seconds to wait; only for code 429
	MigrateTo   ChatID // new ID of a group that has become a supergroup
}

// Error returns the description with its code.
func (e *Error) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Description) }

func badRequest(format string, args ...any) *Error {
	return &Error{Code: http.StatusBadRequest, Description: "Bad Request: " + fmt.Sprintf(format, args...)}
}

func forbidden(text string) *Error {
	return &Error{Code: http.StatusForbidden, Description: "Forbidden: " + text}
}

func conflict(text string) *Error {
	return &Error{Code: http.StatusConflict, Description: "Conflict: " + text}
}

func unauthorized() *Error {
	return &Error{Code: http.StatusUnauthorized, Description: "Unauthorized"}
}

func notFound() *Error {
	return &Error{Code: http.StatusNotFound, Description: "Not Found"}
}

func tooLarge() *Error {
	return &Error{Code: http.StatusRequestEntityTooLarge, Description: "Request Entity Too Large"}
}

func tooManyRequests(seconds int) *Error {
	return &Error{
		Code:        http.StatusTooManyRequests,
		Description: fmt.Sprintf("Too Many Requests: retry after %d", seconds),
		RetryAfter:  seconds,
	}
}

const notModified = "message is not modified: specified new message content and reply markup are exactly the same " +
	"as a current content and reply markup of the message"
