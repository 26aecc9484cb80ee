"""All of torch's public functions and modules, each in an expression of tensors; `inputs.py` says what the letters are.

A call ``torch.f(x, …)`` is made as ``x.f(…)`` as well where tensors have such a method, and as ``x.clone().f_(…)`` where
they have that one.
"""
from __future__ import annotations

_ELEMENTWISE = """
abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh ceil conj conj_physical cos cosh deg2rad
digamma erf erfc erfinv exp exp2 expm1 fix floor frac i0 isfinite isinf isnan isneginf isposinf isreal lgamma log log10 log1p log2
logical_not logit nan_to_num neg negative positive rad2deg reciprocal relu resolve_conj resolve_neg round rsqrt selu sgn sigmoid sign
signbit sin sinc sinh sqrt square tan tanh trunc detach clone rrelu celu hardshrink
ones_like zeros_like rand_like randn_like alias_copy detach_copy
is_complex is_floating_point is_signed is_conj is_neg numel is_inference is_distributed
"""
_BINARY = """
add arctan2 atan2 copysign div divide dist eq equal float_power floor_divide fmax fmin fmod ge greater greater_equal gt heaviside hypot
igamma igammac isclose allclose ldexp le less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor lt maximum minimum mul
multiply ne nextafter not_equal pow remainder rsub sub subtract true_divide xlogy polar complex is_same_size max min
"""
_OF_INTEGERS = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd lcm"
_REDUCING = """
all any amax amin aminmax argmax argmin count_nonzero cummax cummin cumprod cumsum logcumsumexp logsumexp max mean median min mode
nanmean nanmedian nansum norm prod quantile nanquantile std std_mean sum var var_mean softmax log_softmax sort argsort kthvalue topk
unbind diff trapezoid trapz cumulative_trapezoid msort
"""
_SPECIAL = """
airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammaln i0 i0e i1 i1e log1p log_ndtr
logit modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtr ndtri psi round scaled_modified_bessel_k0
scaled_modified_bessel_k1 sinc spherical_bessel_j0
"""
_SPECIAL_BINARY = "gammainc gammaincc xlog1py xlogy zeta"
_POLYNOMIALS = """
chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he
laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
shifted_chebyshev_polynomial_w
"""
_FFT = "fft fft2 fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftn"
_ACTIVATIONS = """
celu elu gelu glu hardshrink hardtanh leaky_relu logsigmoid mish relu relu6 rrelu selu silu softplus softshrink softsign tanhshrink
hardsigmoid hardswish sigmoid tanh normalize
"""
_POINTWISE_LOSSES = "mse_loss l1_loss smooth_l1_loss huber_loss kl_div poisson_nll_loss binary_cross_entropy binary_cross_entropy_with_logits"

TORCH = """
torch.bitwise_not(i) | torch.bincount(i) | torch.mvlgamma(m + 2, 2) | torch.polygamma(1, w)
torch.prelu(b, b.new_ones(1)) | torch.threshold(m, 0.5, 0.0) | torch.clamp(m, 0.2, 0.6) | torch.clamp_max(m, 0.5)
torch.clamp_min(m, 0.5) | torch.clip(m, 0.2, 0.6) | torch.lerp(m, a, 0.3) | torch.addcdiv(m, m, a)
torch.addcmul(m, m, a) | torch.addmm(m @ m.T, m, m.T) | torch.addmv(v, m, m[0]) | torch.addr(torch.outer(v, w), v, w)
torch.addbmm(b[0] @ b[0].mT, b, b.mT) | torch.baddbmm(b @ b.mT, b, b.mT) | torch.bmm(b, b.mT) | torch.mm(m, m.T)
torch.mv(m, m[0]) | torch.matmul(b, b.mT) | torch.dot(v, v) | torch.vdot(v, v) | torch.inner(m, a) | torch.outer(v, w)
torch.ger(v, w) | torch.chain_matmul(m, m.T, m) | torch.einsum("ij,kj->ik", m, a)
torch.tensordot(m, a, dims=([1], [1])) | torch.kron(m, m) | torch.cross(c, c + 1, dim=1)
torch.bilinear(m, m, torch.ones(2, 3, 3)) | torch.addmm(torch.zeros(3), m, torch.eye(3))
torch.linalg.multi_dot([m, m.T, m]) | torch.dsmm(m, m.T) | torch.smm(m.to_sparse(), m.T)
torch.hspmm(m.to_sparse(), m.T) | torch.spmm(m.to_sparse(), m.T) | torch.hsmm(m.to_sparse(), m.T)
torch.sspaddmm(m.to_sparse(), m.to_sparse(), torch.eye(3)) | torch.matrix_power(q, 2) | torch.matrix_exp(q)
torch.cat([m, a]) | torch.concat([m, a]) | torch.concatenate([m, a], 1) | torch.stack([m, a]) | torch.hstack([m, a])
torch.vstack([m, a]) | torch.dstack([m, a]) | torch.row_stack([m, a]) | torch.column_stack([m, a])
torch.block_diag(m, a) | torch.cartesian_prod(v, w) | torch.combinations(v) | torch.combinations(v, 3)
torch.combinations(v, 2, with_replacement=True) | torch.meshgrid(v, w, indexing="ij")
torch.broadcast_tensors(m, v[:, None]) | torch.broadcast_to(v, (2, v.shape[0])) | torch.atleast_1d(v)
torch.atleast_2d(v) | torch.atleast_3d(m) | torch.chunk(m, 2) | torch.chunk(v, 3) | torch.chunk(m, 3, dim=1)
torch.split(m, 2) | torch.split(m, [1, 2], dim=1) | torch.tensor_split(v, 2) | torch.tensor_split(v, [1, 3])
torch.split_with_sizes(m, [1, 2], dim=1) | torch.split_copy(m, 2) | torch.split_with_sizes_copy(m, [1, 2], dim=1)
torch.unsafe_chunk(m, 3, dim=1) | torch.unsafe_split(m, 2) | torch.unsafe_split_with_sizes(m, [1, 2], dim=1)
torch.hsplit(m, [1, 2]) | torch.vsplit(m, [1, 2]) | torch.dsplit(b, 2) | torch.diag(v) | torch.diag(m)
torch.diag_embed(m) | torch.diagflat(v) | torch.diagonal(m) | torch.diagonal_copy(m)
torch.diagonal_scatter(q, v[:q.shape[0]]) | torch.select_scatter(m, m[0], 0, 1)
torch.slice_scatter(m, m[1:3], 0, 1, 3) | torch.as_strided_scatter(m, m[0], (3,), (1,))
torch.expand_copy(v, (2, v.shape[0])) | torch.flatten(b) | torch.flatten(b, 1) | torch.flip(m, (0, 1))
torch.fliplr(m) | torch.flipud(m) | torch.gather(m, 1, j) | torch.index_add(m, 0, i, m)
torch.index_copy(m, 0, i[:1], a[:1]) | torch.index_fill(m, 0, i, 1.0) | torch.index_put(m, (i,), v[:, None])
torch.index_reduce(m, 0, i, m, "amax") | torch.index_select(m, 0, i) | torch.masked_fill(m, r, 0.0)
torch.masked_scatter(m, r, a) | torch.masked_select(m, r) | torch.moveaxis(b, 0, 1) | torch.movedim(b, 0, 2)
torch.narrow(m, 0, 1, 2) | torch.narrow_copy(m, 0, 1, 2) | torch.nonzero(m) | torch.nonzero(m, as_tuple=True)
torch.nonzero_static(m, size=4) | torch.argwhere(r) | torch.permute(b, (2, 0, 1)) | torch.permute_copy(b, (2, 0, 1))
torch.put(m, i, v) | torch.ravel(b) | torch.repeat_interleave(m, 2, dim=0) | torch.repeat_interleave(m, i, dim=0)
torch.repeat_interleave(i) | torch.reshape(b, (-1,)) | torch.roll(m, 1, 0) | torch.rot90(m)
torch.scatter(m, 1, j, a) | torch.scatter_add(m, 1, j, a) | torch.scatter_reduce(m, 1, j, a, "sum")
torch.select(m, 0, 1) | torch.select_copy(m, 0, 1) | torch.slice_copy(m, 0, 1, 3)
torch.slice_inverse(m, m, 0, 0, m.shape[0], 1) | torch.squeeze(m) | torch.squeeze_copy(m) | torch.swapaxes(m, 0, 1)
torch.swapdims(m, 0, 1) | torch.t(m) | torch.t_copy(m) | torch.take(m, i) | torch.take_along_dim(m, j, 1)
torch.tile(m, (2, 1)) | torch.transpose(m, 0, 1) | torch.transpose_copy(m, 0, 1) | torch.adjoint(m) | torch.tril(m)
torch.triu(m) | torch.trace(m) | torch.unflatten(b, 1, (2, 2)) | torch.unfold_copy(v, 0, 2, 1) | torch.unique(i)
torch.unique(i, return_inverse=True, return_counts=True) | torch.unique_consecutive(i)
torch.unravel_index(i, (2, 3)) | torch.unsqueeze(m, 0) | torch.unsqueeze_copy(m, 0) | torch.unbind_copy(m, 1)
torch.view_as_complex(torch.stack([m, a], -1)) | torch.view_as_real(z) | torch.view_as_real_copy(z)
torch.view_copy(m, (-1,)) | torch.where(r, m, a) | torch.where(r) | torch.real(z) | torch.imag(z)
torch.searchsorted(w.cumsum(0), v) | torch.bucketize(v, w.cumsum(0)) | torch.isin(i, i[:2]) | torch.histc(v, 4, 0, 1)
torch.histogram(v, 4) | torch.histogramdd(m, [2, 2, 2]) | torch.cdist(m, a) | torch.pdist(m)
torch.cosine_similarity(m, a) | torch.pairwise_distance(m, a) | torch.corrcoef(m) | torch.cov(m) | torch.gradient(v)
torch.renorm(m, 2, 0, 1.0) | torch.frexp(m) | torch.frobenius_norm(m, [0, 1]) | torch.nuclear_norm(m)
torch.norm_except_dim(m) | torch.constant_pad_nd(m, (1, 2)) | torch.cholesky(q)
torch.cholesky_inverse(torch.linalg.cholesky(q)) | torch.cholesky_solve(q[:, :1], torch.linalg.cholesky(q))
torch.det(q) | torch.logdet(q) | torch.slogdet(q) | torch.inverse(q) | torch.pinverse(m) | torch.geqrf(m)
torch.qr(m) | torch.svd(m) | torch.lu(q) | torch.lu_solve(q[:, :1], *torch.linalg.lu_factor(q))
torch.lu_unpack(*torch.linalg.lu_factor(q)) | torch.orgqr(*torch.geqrf(m)) | torch.ormqr(*torch.geqrf(m), m)
torch.triangular_solve(q[:, :1], q) | torch.lobpcg(q + torch.eye(q.shape[0]), 1, niter=1)[0].abs()
torch.svd_lowrank(m)[1] | torch.pca_lowrank(m, 2)[1] | torch.adaptive_avg_pool1d(b, 2)
torch.adaptive_max_pool1d(b, 2) | torch.avg_pool1d(b, 2) | torch.max_pool1d(b, 2)
torch.max_pool1d_with_indices(b, 2) | torch.max_pool2d(g, 2) | torch.max_pool3d(o, 2)
torch.affine_grid_generator(torch.ones(2, 2, 3) * v[0], (2, 1, 3, 3), False) | torch.alpha_dropout(m, 0.5, True)
torch.dropout(m, 0.5, True) | torch.feature_alpha_dropout(m, 0.5, True) | torch.feature_dropout(m, 0.5, True)
torch.native_dropout(m, 0.5, True) | torch.batch_norm(b, None, None, None, None, True, 0.1, 1e-5, False)
torch.instance_norm(b, None, None, None, None, True, 0.1, 1e-5, False) | torch.group_norm(b, 2)
torch.layer_norm(m, (3,)) | torch.rms_norm(m, (3,))
torch.native_batch_norm(b, None, None, None, None, True, 0.1, 1e-5)
torch.native_layer_norm(m, (3,), None, None, 1e-5) | torch.conv1d(b, torch.ones(2, 4, 3))
torch.conv2d(g, torch.ones(2, 4, 3, 3), padding=1) | torch.conv3d(o, torch.ones(1, 2, 2, 2, 2))
torch.conv_tbc(e, torch.ones(2, 6, 3), torch.ones(3), 1) | torch.conv_transpose1d(b, torch.ones(4, 2, 3), stride=2)
torch.conv_transpose2d(g, torch.ones(4, 2, 3, 3)) | torch.conv_transpose3d(o, torch.ones(2, 1, 2, 2, 2))
torch.convolution(b, torch.ones(2, 4, 3), None, (1,), (0,), (1,), False, (0,), 1) | torch.channel_shuffle(g, 2)
torch.native_channel_shuffle(g, 2) | torch.pixel_shuffle(g, 2) | torch.pixel_unshuffle(g, 2)
torch.grid_sampler(g, torch.zeros(g.shape[0], 2, 2, 2), 0, 0, False)
torch.grid_sampler_2d(g, torch.zeros(g.shape[0], 2, 2, 2), 0, 0, False)
torch.grid_sampler_3d(o, torch.zeros(o.shape[0], 2, 2, 2, 3), 0, 0, False) | torch.embedding(torch.eye(3), i)
torch.embedding_bag(torch.eye(3), i, i.new_zeros(1))[0]
i.new_ones(1, 2) + i[:1]
torch.ctc_loss(e.transpose(0, 1).log_softmax(-1), i.new_ones(e.shape[0], 2) + i[:, None] * 0, i.new_full((e.shape[0],), 4), i.new_full((e.shape[0],), 2))
torch.binary_cross_entropy_with_logits(m, a, None, None, 1) | torch.cosine_embedding_loss(m, a, v.sign())
torch.hinge_embedding_loss(m, a.sign()) | torch.kl_div(m, a) | torch.margin_ranking_loss(v, w, v.sign())
torch.poisson_nll_loss(m, a, True, False, 1e-8, 1) | torch.triplet_margin_loss(m, a, m + a)
torch.gru_cell(m, a, torch.ones(9, 3), torch.ones(9, 3))
torch.lstm_cell(m, (a, a), torch.ones(12, 3), torch.ones(12, 3))
torch.rnn_tanh_cell(m, a, torch.ones(3, 3), torch.ones(3, 3))
torch.rnn_relu_cell(m, a, torch.ones(3, 3), torch.ones(3, 3))
torch.gru(e, e.new_zeros(1, e.shape[0], 2), [torch.ones(6, 6), torch.ones(6, 2)], False, 1, 0.0, False, False, True)
torch.lstm(e, (e.new_zeros(1, e.shape[0], 2), e.new_zeros(1, e.shape[0], 2)), [torch.ones(8, 6), torch.ones(8, 2)], False, 1, 0.0, False, False, True)
torch.rnn_tanh(e, e.new_zeros(1, e.shape[0], 2), [torch.ones(2, 6), torch.ones(2, 2)], False, 1, 0.0, False, False, True)
torch.rnn_relu(e, e.new_zeros(1, e.shape[0], 2), [torch.ones(2, 6), torch.ones(2, 2)], False, 1, 0.0, False, False, True)
torch.empty_like(m).fill_(1) | torch.is_nonzero(v[0]) | torch.bernoulli(w) | torch.binomial(i.float() + 2, w)
torch.multinomial(w, 2) | torch.normal(v, w) | torch.poisson(w) | torch.rand_like(m) | torch.randint_like(m, 5)
torch.full_like(m, 2.0) | torch.stft(v.repeat(4), 4, window=torch.ones(4), return_complex=True)
torch.istft(torch.stft(v.repeat(4), 4, window=torch.ones(4), return_complex=True), 4, window=torch.ones(4))
torch.fake_quantize_per_tensor_affine(m, 0.1, 0, -8, 7)
torch.fake_quantize_per_channel_affine(m, torch.ones(3) * 0.1, torch.zeros(3), 1, -8, 7) | torch.arange(v.shape[0])
torch.linspace(0, 1, v.shape[0]) | torch.logspace(0, 1, v.shape[0]) | torch.eye(v.shape[0])
torch.zeros(v.shape[0], 2) | torch.ones(v.shape[0]) | torch.full((v.shape[0],), 2.0)
torch.empty(v.shape[0]).fill_(1) | torch.rand(v.shape[0]) | torch.randn(v.shape[0]) | torch.randint(5, (v.shape[0],))
torch.randperm(v.shape[0]) | torch.range(1, v.shape[0]) | torch.scalar_tensor(v.shape[0]) | torch.tensor(v.shape[0])
torch.as_tensor(v) | torch.asarray(v) | torch.normal(0.0, 1.0, (v.shape[0],))
torch.empty_strided((v.shape[0],), (1,)).fill_(1) | torch.empty_permuted((v.shape[0], 2), (1, 0)).fill_(1)
torch.tril_indices(v.shape[0], 3) | torch.triu_indices(v.shape[0], 3) | torch.vander(v)
torch.bartlett_window(v.shape[0]) | torch.blackman_window(v.shape[0]) | torch.hamming_window(v.shape[0])
torch.hann_window(v.shape[0]) | torch.kaiser_window(v.shape[0]) | torch.broadcast_shapes(v.shape, (1,))
torch.result_type(v, i) | torch.segment_reduce(v, "sum", lengths=torch.ones_like(i)) | torch.as_strided(m, (2,), (1,))
torch.fill(m, 2.0) | torch.is_tensor(v) | torch.is_storage(v) | torch.get_device(v) | torch.vmap(torch.sin)(m)
torch.dequantize(m) | torch.sym_max(v.shape[0], 2) | torch.sym_min(v.shape[0], 2) | torch.sym_int(v.shape[0] / 2)
torch.sym_float(v.shape[0]) | torch.sym_not(v.shape[0] > 2) | torch.sym_sqrt(v.shape[0])
torch.sym_ite(v.shape[0] > 2, 1, 2) | torch.promote_types(v.dtype, i.dtype) | torch.can_cast(v.dtype, i.dtype)
torch.rsub(m, 2) | torch.max(m) | torch.min(m) | torch.sum(m) | torch.prod(m) | torch.std(m) | torch.median(m)
torch.argmax(m) | torch.quantile(v, 0.3) | torch.norm(m) | torch.all(r) | torch.logsumexp(m, (0, 1))
torch.heaviside(v, w) | torch.sum(b, (0, 2))
"""
METHODS = """
m.expand(2, *m.shape) | v.expand_as(m.T) | m.repeat(2, 1) | m.reshape(-1) | m.reshape_as(a) | m.view(-1)
m.view_as(a) | m.view(torch.int32) | m.contiguous() | m.to(torch.float64) | m.type(torch.float64) | m.type_as(i)
m.type() | m.bfloat16() | m.bool() | m.byte() | m.char() | m.double() | m.float() | m.half() | m.int() | m.long()
m.short() | m.cfloat() | m.cdouble() | m.chalf() | m.cpu() | v.unfold(0, 2, 1) | m.unfold(0, 3, 2) | b.unfold(2, 2, 2)
m.as_strided((2, 2), (1, 1)) | m.clone().as_strided_((2, 2), (1, 1)) | m.new_zeros(m.shape) | m.new_ones(m.shape)
m.new_full(m.shape, 2.0) | m.new_empty(m.shape).fill_(1) | m.new_empty_strided((2,), (1,)).fill_(1)
m.new_tensor([1.0]) | m.new([1.0]) | m.size() | m.size(0) | m.dim() | m.ndimension() | m.nelement() | m.element_size()
m.stride() | m.storage_offset() | m.is_contiguous() | m.dim_order() | m.is_shared() | m.is_pinned()
m.sum_to_size(1, m.shape[1]) | m.tolist() | v[0].item() | m.masked_fill(r, 1.0) | m.to_sparse().to_dense()
m.to_sparse_coo().to_dense() | m.to_sparse().coalesce().values() | m.to_sparse().coalesce().indices()
m.to_sparse().sparse_dim() | m.to_sparse().dense_dim() | m.to_sparse().is_coalesced()
m.sparse_mask(m.to_sparse().coalesce()).to_dense() | m.to_sparse_csr().to_dense() | m.to_sparse_csc().to_dense()
m.to_sparse_bsr((1, 1)).to_dense() | m.to_sparse_bsc((1, 1)).to_dense() | m.to_sparse_csr().crow_indices()
m.to_sparse_csr().col_indices() | m.to_sparse_csc().ccol_indices() | m.to_sparse_csc().row_indices()
m.clone().zero_() | m.clone().fill_(2) | m.clone().fill_diagonal_(2) | m.clone().copy_(a) | m.clone().normal_()
m.clone().uniform_() | m.clone().random_() | m.clone().random_(5) | m.clone().random_(**{"from": 0, "to": 10})
m.clone().uniform_(**{"from": 0, "to": 10}) | m.clone().exponential_() | m.clone().cauchy_()
m.clone().geometric_(0.5) | m.clone().log_normal_() | m.clone().bernoulli_() | m.clone().requires_grad_()
i.clone().resize_(2) | j.clone().resize_as_(i) | m.clone().set_(v.clone()) | m.detach().clone().detach_()
m.clone().swapaxes_(0, 1) | m.clone().squeeze_() | m.clone().unsqueeze_(0) | m.clone().t_()
m.clone().transpose_(0, 1) | m.clone().index_put_((i,), v[:, None]) | m.clone().put_(i, v)
i.clone().map_(i, lambda x, y: x) | i.clone().apply_(lambda x: x) | m.T | m.mT | m.mH | m.H | m.data | z.real | z.imag
m.shape | m.ndim | m.nbytes | m.itemsize | m.dtype | m.device | m.layout | m.grad | m.requires_grad | m.is_leaf
m.is_sparse | m.is_quantized | m[i] | m[r] | m[p] | m[p.byte()] | m[p.data] | m.data[p] | m[1:] | m[..., 0] | m[None]
m[i, 0] | m[:, [0, 1]] | m[::2] | m[-1] | v[v > 0.5] | m[m.argmax(0)] | len(m) | bool(v[0] > 0) | int(v[0])
float(v[0]) | m + a | m - a | m * a | m / a | m // a | m % a | m ** 2 | -m | abs(m) | ~r | r & r | r | r ^ r | m @ a.T
2 - m | 2 / m | 2 ** m | m == a | m != a | m < a | m <= a | m > a | m >= a | i << 1 | i >> 1 | 1 in i | reversed(v)
list(m.T)[0]
"""
LINALG = """
torch.linalg.cholesky(q) | torch.linalg.cholesky_ex(q) | torch.linalg.cond(q) | torch.linalg.cross(c, c + 1)
torch.linalg.det(q) | torch.linalg.diagonal(m) | torch.linalg.eig(q)[0] | torch.linalg.eigh(q)[0]
torch.linalg.eigvals(q) | torch.linalg.eigvalsh(q) | torch.linalg.householder_product(*torch.geqrf(m))
torch.linalg.inv(q) | torch.linalg.inv_ex(q) | torch.linalg.ldl_factor(q) | torch.linalg.ldl_factor_ex(q)
torch.linalg.ldl_solve(*torch.linalg.ldl_factor(q), q) | torch.linalg.lstsq(m, a).solution | torch.linalg.lu(q)
torch.linalg.lu_factor(q) | torch.linalg.lu_factor_ex(q) | torch.linalg.lu_solve(*torch.linalg.lu_factor(q), q)
torch.linalg.matmul(m, m.T) | torch.linalg.matrix_exp(q) | torch.linalg.matrix_norm(m)
torch.linalg.matrix_power(q, 3) | torch.linalg.matrix_rank(q) | torch.linalg.norm(m) | torch.linalg.pinv(m)
torch.linalg.qr(m) | torch.linalg.slogdet(q) | torch.linalg.solve(q, q) | torch.linalg.solve_ex(q, q)
torch.linalg.solve_triangular(q, q, upper=True) | torch.linalg.svd(m)[1] | torch.linalg.svdvals(m)
torch.linalg.tensorinv(q, 1) | torch.linalg.tensorsolve(q, v[:q.shape[0]]) | torch.linalg.vander(v)
torch.linalg.vecdot(m, a) | torch.linalg.vector_norm(m) | torch.special.logsumexp(m, 0) | torch.special.softmax(m, 0)
torch.special.log_softmax(m, 0) | torch.special.multigammaln(m + 2, 2) | torch.special.polygamma(1, w)
torch.fft.fftfreq(v.shape[0]) | torch.fft.rfftfreq(v.shape[0])
"""
FUNCTIONAL = """
F.adaptive_avg_pool1d(b, 2) | F.adaptive_avg_pool2d(g, 2) | F.adaptive_avg_pool3d(o, 2) | F.adaptive_max_pool1d(b, 2)
F.adaptive_max_pool2d(g, 2) | F.adaptive_max_pool3d(o, 2) | F.adaptive_max_pool1d_with_indices(b, 2)
F.adaptive_max_pool2d_with_indices(g, 2) | F.adaptive_max_pool3d_with_indices(o, 2)
F.affine_grid(torch.ones(2, 2, 3) * v[0], (2, 1, 3, 3)) | F.alpha_dropout(m, 0.5, True) | F.avg_pool1d(b, 2)
F.avg_pool2d(g, 2) | F.avg_pool3d(o, 2) | F.batch_norm(b, None, None, training=True)
F.bilinear(m, m, torch.ones(2, 3, 3)) | F.channel_shuffle(g, 2) | F.native_channel_shuffle(g, 2)
F.conv1d(b, torch.ones(2, 4, 3)) | F.conv1d(b, torch.ones(2, 4, 3), padding="same")
F.conv2d(g, torch.ones(2, 4, 3, 3), stride=2) | F.conv3d(o, torch.ones(1, 2, 2, 2, 2))
F.conv_tbc(e, torch.ones(2, 6, 3), torch.ones(3), 1) | F.conv_transpose1d(b, torch.ones(4, 2, 3), stride=2)
F.conv_transpose2d(g, torch.ones(4, 2, 3, 3)) | F.conv_transpose3d(o, torch.ones(2, 1, 2, 2, 2))
F.cosine_embedding_loss(m, a, v.sign()) | F.cosine_similarity(m, a) | F.cross_entropy(m, i)
F.cross_entropy(m, a.softmax(1))
F.ctc_loss(e.transpose(0, 1).log_softmax(-1), i.new_ones(e.shape[0], 2) + i[:, None] * 0, i.new_full((e.shape[0],), 4), i.new_full((e.shape[0],), 2))
F.dropout(m, 0.5, True) | F.dropout1d(b, 0.5, True) | F.dropout2d(g, 0.5, True) | F.dropout3d(o, 0.5, True)
F.embedding(i, torch.eye(3)) | F.embedding_bag(j, torch.eye(3)) | F.feature_alpha_dropout(m, 0.5, True)
F.fold(f, (3, 3), (2, 2)) | F.fractional_max_pool2d(g, 2, output_size=2)
F.fractional_max_pool2d_with_indices(g, 2, output_size=2) | F.fractional_max_pool3d(o, 2, output_size=2)
F.fractional_max_pool3d_with_indices(o, 2, output_size=2) | F.gaussian_nll_loss(m, a, a + 1)
F.grid_sample(g, torch.zeros(g.shape[0], 2, 2, 2)) | F.group_norm(b, 2) | F.gumbel_softmax(m)
F.gumbel_softmax(m, hard=True) | F.hinge_embedding_loss(m, a.sign()) | F.instance_norm(b) | F.threshold(m, 0.5, 0.0)
F.interpolate(b, scale_factor=2) | F.interpolate(g, size=(3, 3), mode="bilinear")
F.interpolate(g, scale_factor=0.5, mode="area") | F.interpolate(b, size=4, mode="linear")
F.interpolate(g, scale_factor=2, mode="bicubic") | F.interpolate(o, scale_factor=2, mode="trilinear")
F.upsample(b, scale_factor=2) | F.layer_norm(m, (3,)) | F.rms_norm(m, (3,)) | F.linear(m, torch.ones(2, 3))
F.linear_cross_entropy(m, torch.ones(4, 3), i) | F.local_response_norm(g, 2) | F.lp_pool1d(b, 2, 2)
F.lp_pool2d(g, 2, 2) | F.lp_pool3d(o, 2, 2) | F.margin_ranking_loss(v, w, v.sign()) | F.max_pool1d(b, 2)
F.max_pool2d(g, 2) | F.max_pool3d(o, 2) | F.max_pool1d_with_indices(b, 2) | F.max_pool2d_with_indices(g, 2)
F.max_pool3d_with_indices(o, 2) | F.max_unpool1d(*F.max_pool1d(b, 2, return_indices=True), 2)
F.max_unpool2d(*F.max_pool2d(g, 2, return_indices=True), 2)
F.max_unpool3d(*F.max_pool3d(o.detach(), 2, return_indices=True), 2, output_size=o.shape[2:])
F.multi_margin_loss(m, i)
F.multilabel_margin_loss(m, j) | F.multilabel_soft_margin_loss(m, a.round())
F.multi_head_attention_forward(e, e, e, 6, 2, torch.ones(18, 6), torch.ones(18), None, None, False, 0.0, torch.ones(6, 6), torch.ones(6))[0]
F.nll_loss(m, i) | F.one_hot(i, 3) | F.one_hot(i) | F.pad(v, (1, 1)) | F.pad(v, (0, 2), value=3.0) | F.pad(v, (-1, 1))
F.pad(m, (1, 1, 2, 0)) | F.pad(m, (1, 1), mode="reflect") | F.pad(b, (1, 2), mode="reflect")
F.pad(m, (1, 1), mode="replicate") | F.pad(b, (1, 2), mode="replicate") | F.pad(b, (1, 2), mode="circular")
F.pad(g, (1, 1, 1, 1), mode="reflect") | F.pad(g, (1, 1, 1, 1), mode="replicate")
F.pad(g, (1, 1, 1, 1), mode="circular") | F.pad(o, (1, 1, 1, 1, 1, 1), mode="replicate") | F.pad(v, (0, v.shape[0]))
F.pad(i, (0, 1), value=-1) | F.pairwise_distance(m, a) | F.pdist(m) | F.pixel_shuffle(g, 2) | F.pixel_unshuffle(g, 2)
F.prelu(b, torch.ones(4)) | F.scaled_dot_product_attention(b, b, b)
F.scaled_dot_product_attention(b, b, b, is_causal=True) | F.soft_margin_loss(m, a.sign().detach()) | F.softmax(m, 0)
F.log_softmax(m, 0) | F.softmin(m, 0) | F.triplet_margin_loss(m, a, m + a)
F.triplet_margin_with_distance_loss(m, a, m + a) | F.unfold(g, 2)
F.bilinear(m, a, torch.ones(1, 3, 3), torch.ones(1)) | F.upsample_nearest(g, scale_factor=2)
F.upsample_bilinear(g, scale_factor=2) | torch.nn.utils.rnn.pad_sequence([v, w[1:]])
torch.nn.utils.rnn.pad_sequence([m, a[1:]], batch_first=True, padding_value=-1.0)
torch.nn.utils.rnn.pad_sequence([v, w[1:]], padding_side="left")
torch.nn.utils.rnn.pack_padded_sequence(b, i.new_full((b.shape[0],), 3), batch_first=True).data
torch.nn.utils.rnn.pack_sequence([m, a[1:]]).data
"""
MODULES = """
nn.AdaptiveAvgPool1d(2)(b) | nn.AdaptiveAvgPool2d(2)(g) | nn.AdaptiveAvgPool3d(2)(o)
nn.AdaptiveLogSoftmaxWithLoss(3, 4, [2])(m, i)[0] | nn.AdaptiveMaxPool1d(2)(b) | nn.AdaptiveMaxPool2d(2)(g)
nn.AdaptiveMaxPool3d(2)(o) | nn.AlphaDropout()(m) | nn.AvgPool1d(2)(b) | nn.AvgPool2d(2)(g) | nn.AvgPool3d(2)(o)
nn.BCELoss()(a, a) | nn.BCEWithLogitsLoss()(m, a) | nn.BatchNorm1d(4)(b) | nn.BatchNorm2d(4)(g) | nn.BatchNorm3d(2)(o)
nn.Bilinear(3, 3, 2)(m, a) | nn.CELU()(m)
nn.CTCLoss()(e.transpose(0, 1).log_softmax(-1), i.new_ones(e.shape[0], 2) + i[:, None] * 0, i.new_full((e.shape[0],), 4), i.new_full((e.shape[0],), 2))
nn.ChannelShuffle(2)(g) | nn.CircularPad1d(1)(b) | nn.CircularPad2d(1)(g) | nn.CircularPad3d(1)(o)
nn.ConstantPad1d(1, 0.0)(b) | nn.ConstantPad2d(1, 0.0)(g) | nn.ConstantPad3d(1, 0.0)(o) | nn.Conv1d(4, 2, 3)(b)
nn.Conv1d(4, 2, 3, padding=1, padding_mode="circular")(b) | nn.Conv2d(4, 2, 3)(g) | nn.Conv3d(2, 2, 2)(o)
nn.ConvTranspose1d(4, 2, 3)(b) | nn.ConvTranspose2d(4, 2, 3)(g) | nn.ConvTranspose3d(2, 2, 2)(o)
nn.CosineEmbeddingLoss()(m, a, v.sign()) | nn.CosineSimilarity()(m, a) | nn.CrossEntropyLoss()(m, i)
nn.CrossMapLRN2d(2)(g) | nn.Dropout()(m) | nn.Dropout1d()(b) | nn.Dropout2d()(g) | nn.Dropout3d()(o) | nn.ELU()(m)
nn.Embedding(3, 2)(i) | nn.EmbeddingBag(3, 2)(j) | nn.FeatureAlphaDropout()(b) | nn.Flatten()(b)
nn.Fold((3, 3), (2, 2))(f) | nn.FractionalMaxPool2d(2, output_size=2)(g) | nn.FractionalMaxPool3d(2, output_size=2)(o)
nn.GELU()(m) | nn.GLU()(b) | nn.GRU(6, 2, batch_first=True)(e) | nn.GRUCell(3, 2)(m)
nn.GaussianNLLLoss()(m, a, a + 1) | nn.GroupNorm(2, 4)(b) | nn.Hardshrink()(m) | nn.Hardsigmoid()(m)
nn.Hardswish()(m) | nn.Hardtanh()(m) | nn.HingeEmbeddingLoss()(m, a.sign()) | nn.HuberLoss()(m, a) | nn.Identity()(m)
nn.InstanceNorm1d(4)(b) | nn.InstanceNorm2d(4)(g) | nn.InstanceNorm3d(2)(o) | nn.KLDivLoss()(m, a) | nn.L1Loss()(m, a)
nn.LPPool1d(2, 2)(b) | nn.LPPool2d(2, 2)(g) | nn.LPPool3d(2, 2)(o) | nn.LSTM(6, 2, batch_first=True)(e)
nn.LSTM(6, 2, 2, bidirectional=True)(e) | nn.LSTMCell(3, 2)(m) | nn.LayerNorm(3)(m) | nn.LeakyReLU()(m)
nn.Linear(3, 2)(m) | nn.LinearCrossEntropyLoss(3, 4)(m, i) | nn.LocalResponseNorm(2)(g) | nn.LogSigmoid()(m)
nn.LogSoftmax(1)(m) | nn.MSELoss()(m, a) | nn.MarginRankingLoss()(v, w, v.sign()) | nn.MaxPool1d(2)(b)
nn.MaxPool2d(2)(g) | nn.MaxPool3d(2)(o) | nn.MaxUnpool1d(2)(*nn.MaxPool1d(2, return_indices=True)(b))
nn.MaxUnpool2d(2)(*nn.MaxPool2d(2, return_indices=True)(g))
nn.MaxUnpool3d(2)(*nn.MaxPool3d(2, return_indices=True)(o.detach()), output_size=o.shape[2:])
nn.Mish()(m) | nn.MultiLabelMarginLoss()(m, j)
nn.MultiLabelSoftMarginLoss()(m, a.round()) | nn.MultiMarginLoss()(m, i)
nn.MultiheadAttention(6, 2, batch_first=True)(e, e, e) | nn.NLLLoss()(m, i) | nn.PReLU()(m)
nn.PairwiseDistance()(m, a) | nn.PixelShuffle(2)(g) | nn.PixelUnshuffle(2)(g) | nn.PoissonNLLLoss()(m, a)
nn.RMSNorm(3)(m) | nn.RNN(6, 2)(e) | nn.RNNCell(3, 2)(m) | nn.RReLU()(m) | nn.ReLU()(m) | nn.ReLU6()(m)
nn.ReflectionPad1d(1)(b) | nn.ReflectionPad2d(1)(g) | nn.ReflectionPad3d(1)(o) | nn.ReplicationPad1d(1)(b)
nn.ReplicationPad2d(1)(g) | nn.ReplicationPad3d(1)(o) | nn.SELU()(m) | nn.Sequential(nn.Linear(3, 2), nn.ReLU())(m)
nn.SiLU()(m) | nn.Sigmoid()(m) | nn.SmoothL1Loss()(m, a) | nn.SoftMarginLoss()(m, a.sign().detach())
nn.Softmax(1)(m) | nn.Softmax2d()(g) | nn.Softmin(1)(m) | nn.Softplus()(m) | nn.Softshrink()(m) | nn.Softsign()(m)
nn.Tanh()(m) | nn.Tanhshrink()(m) | nn.Threshold(0.5, 0.0)(m) | nn.Transformer(6, 2, 1, 1, 8, batch_first=True)(e, e)
nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8, batch_first=True), 1)(e, e)
nn.TransformerDecoderLayer(6, 2, 8, batch_first=True)(e, e)
nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), 1)(e)
nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)(e) | nn.TripletMarginLoss()(m, a, m + a)
nn.TripletMarginWithDistanceLoss()(m, a, m + a) | nn.Unflatten(1, (2, 2))(b) | nn.Unfold(2)(g)
nn.Upsample(scale_factor=2)(b) | nn.UpsamplingBilinear2d(scale_factor=2)(g)
nn.UpsamplingNearest2d(scale_factor=2)(g) | nn.ZeroPad1d(1)(b) | nn.ZeroPad2d(1)(g) | nn.ZeroPad3d(1)(o)
"""


def _rows(text: str) -> list[str]:
    return [row.strip() for line in text.strip().splitlines() for row in line.split(" | ") if row.strip()]


def _each(template: str, names: str) -> list[str]:
    return [template.format(name) for name in names.split()]


_WITH_MORE = {"quantile": "0.3, 0", "nanquantile": "0.3, 0", "kthvalue": "2, 0", "topk": "2, 0", "norm": "2, 0", "msort": ""}
_NO_DIM = {"diff": "dim=0"}


def _reducing(name: str) -> str:
    rest = _WITH_MORE.get(name, _NO_DIM.get(name, "dim=0"))
    return f"torch.{name}(m, {rest})" if rest else f"torch.{name}(m)"


LATER = {"torch.linalg.matrix_sqrth": "torch.linalg.matrix_sqrth(q)"}
"""Of functions that came after torch 2.13; the guide does not count them."""

EXPRESSIONS: list[str] = [
    *_each("torch.{}(m)", _ELEMENTWISE),
    *_each("torch.{}(m, a)", _BINARY),
    *_each("torch.{}(i, i + 1)", _OF_INTEGERS),
    *map(_reducing, _REDUCING.split()),
    *_each("torch.special.{}(w)", _SPECIAL),
    *_each("torch.special.{}(w, v)", _SPECIAL_BINARY),
    *_each("torch.special.{}(w, i)", _POLYNOMIALS),
    *_each("torch.fft.{}(m)", _FFT),
    *_each("F.{}(b)", _ACTIVATIONS),
    *_each("F.{}(m, a)", _POINTWISE_LOSSES),
    *_rows(TORCH),
    *_rows(METHODS),
    *_rows(LINALG),
    *_rows(FUNCTIONAL),
    *_rows(MODULES),
]
