module github.com/loomgate/loomgate

go 1.26
