package approval

import (
	"os"
	"testing"

	"ductor/internal/testprogram"
)

func TestMain(m *testing.M) {
	testprogram.Checks(25)
	os.Exit(m.Run())
}
