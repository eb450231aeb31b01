package bot

import (
	"testing"

	"go.uber.org/goleak"

	"ductor/internal/testprogram"
)

func TestMain(m *testing.M) {
	testprogram.Checks(25)
	goleak.VerifyTestMain(m)
}
