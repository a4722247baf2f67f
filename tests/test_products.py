import pytest
import torch
import torch.nn.functional as F

from mbc.products import linear


def operands(dtype):
    generator = torch.Generator().manual_seed(0)
    inputs, weight, bias = (
        torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for shape in ((30, 7), (5, 7), (5,))
    )
    return inputs, weight, bias


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("with_bias", [True, False])
def test_the_product_and_its_gradients_are_pytorchs(dtype, with_bias):
    ours, theirs = operands(dtype), operands(dtype)
    results = []
    for function, (inputs, weight, bias) in ((linear, ours), (F.linear, theirs)):
        result = function(inputs, weight, bias if with_bias else None)
        result.square().sum().backward()
        results.append(result)
    assert results[0].dtype == dtype
    assert torch.allclose(*results, rtol=1e-5, atol=1e-5)
    for own, other in zip(ours[: 2 + with_bias], theirs, strict=False):
        assert torch.allclose(own.grad, other.grad, rtol=1e-4, atol=1e-4)


def test_operands_may_be_transposed():
    inputs, weight, bias = operands(torch.float32)
    stored = inputs.detach().T.contiguous().T, weight.detach().T.contiguous().T
    assert torch.allclose(linear(*stored, bias), linear(inputs, weight, bias), atol=1e-6)


def test_only_what_is_asked_for_is_differentiated():
    inputs, weight, bias = operands(torch.float32)
    linear(inputs.detach(), weight, bias).sum().backward()
    assert inputs.grad is None
    assert torch.allclose(bias.grad, torch.full((5,), 30.0))
    assert torch.allclose(weight.grad, inputs.detach().sum(0).expand(5, 7), atol=1e-5)


def test_second_derivatives_are_pytorchs():
    hessian_products = []
    for function in (linear, F.linear):
        inputs, weight, bias = operands(torch.float32)
        loss = function(inputs, weight, bias).tanh().square().sum()
        first = torch.autograd.grad(loss, [inputs, weight, bias], create_graph=True)
        slope = sum((part * torch.ones_like(part)).sum() for part in first)
        hessian_products.append(torch.autograd.grad(slope, [inputs, weight, bias]))
    for own, other in zip(*hessian_products, strict=True):
        assert torch.allclose(own, other, rtol=1e-4, atol=1e-4)
