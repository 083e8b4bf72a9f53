module github.com/loomgate/loomgate/decorators/crypto/vault

go 1.26.0

replace github.com/loomgate/loomgate => ../../..

require github.com/loomgate/loomgate v0.0.0-00010101000000-000000000000

require (
	github.com/tidwall/btree v1.8.2 // indirect
	github.com/tink-crypto/tink-go/v2 v2.9.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
